"""A toy sampler: the server draws rows evenly and tells the parties which. All that a sampler is made of."""

from typing import Self

import msgspec
import numpy as np

from colonnade.contracts import Roster, ScoreRule, Script, Task
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.kernels.draws import draw_evenly
from colonnade.sampling.selecting import use_rows
from colonnade.sampling.weights import weight_of_all


class Told(msgspec.Struct, frozen=True, tag_field="kind", tag="told", forbid_unknown_fields=True):
    """Draw rows evenly at the server, and tell which."""

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
        row_weights: Floats | None = None,
    ) -> Script[Coreset]:
        """Draw, and tell."""
        rows = yield from use_rows(roster, draw_evenly(roster.n_rows, self.size, rng, row_weights))
        total_weight = weight_of_all(roster, row_weights)
        weights = np.full(self.size, total_weight / self.size)
        return Coreset(rows, weights, roster.n_rows, total_weight, str(self))
