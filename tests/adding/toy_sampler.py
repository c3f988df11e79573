"""A toy sampler: the server tells the parties a seed, from which all draw the same rows. All that one is made of."""

from dataclasses import replace
from typing import Self

import msgspec
import numpy as np

from colonnade.contracts import Agreed, Roster, ScoreRule, Script, Task
from colonnade.coreset import Coreset
from colonnade.kernels.per_row import PerRow
from colonnade.routes import Route
from colonnade.sampling.selecting import even_draw_route, use_even_draw


class Told(msgspec.Struct, frozen=True, tag_field="kind", tag="told", forbid_unknown_fields=True):
    """Draw rows evenly, at every side."""

    size: int

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Draw from any parties, for any task."""

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def scored_by(self, rule: ScoreRule, roster: Roster) -> ScoreRule:  # noqa: ARG002  # rows are not scored
        """Leave the task's rule as it is."""
        return rule

    def sample(
        self,
        roster: Roster,
        rule: ScoreRule,  # noqa: ARG002
        rng: np.random.Generator,
        row_weights: PerRow | None = None,
    ) -> Script[Coreset]:
        """Tell the seed that stands on the job sheet, and draw."""
        coreset = yield from use_even_draw(roster, self.size, rng, row_weights)
        return replace(coreset, sampler=str(self))

    def route(self, rule: ScoreRule, agreed: Agreed) -> Route:  # noqa: ARG002  # rows are not scored
        """Expect that seed, once."""
        return even_draw_route(self.size, agreed.seeds)
