"""The baselines that a coreset is compared with: rows drawn evenly, and all rows."""

from typing import Literal, Self

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Agreed, Roster, ScoreRule, Script, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError
from colonnade.kernels.per_row import PerRow
from colonnade.routes import Ask, Route
from colonnade.sampling.selecting import UseAllRows, even_draw_route, use_all_rows, use_distinct_draw, use_even_draw
from colonnade.sampling.size import sample_size


class UniformSampling(
    msgspec.Struct,
    frozen=True,
    tag_field="kind",
    tag="uniform",
    forbid_unknown_fields=True,
    repr_omit_defaults=True,
):
    """Draw rows evenly, weight n / m: the baseline. Only a seed travels.

    Where rows have weights of their own they are drawn by these, as if they counted copies.

    Parameters
    ----------
    size : int
        m, how many rows to draw; where there are no more, all are taken.
    draws : {"distinct", "independent"}
        Each row at most once, or with replacement, as in the paper: m may exceed the number of rows then, and a row
        drawn twice is there twice.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> federation = cn.Federation(cn.split_columns(np.eye(8), None, [4, 4]))
    >>> run = federation.coreset(cn.KMeans(n_clusters=2), cn.UniformSampling(size=4))
    >>> run.coreset.weights.tolist(), run.ledger.units
    ([2.0, 2.0, 2.0, 2.0], 0)
    """

    size: int
    draws: Literal["distinct", "independent"] = "distinct"

    def __post_init__(self) -> None:
        force_setattr(self, "size", sample_size(self.size))
        if self.draws not in ("distinct", "independent"):
            raise InputError(f'draws must be "distinct" or "independent", got {self.draws!r}. Pass one of the two.')

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
        """Share a seed, and draw from it here as the parties do there."""
        draw = use_distinct_draw if self.draws == "distinct" else use_even_draw
        return draw(roster, self.size, rng, row_weights)

    def route(self, rule: ScoreRule, agreed: Agreed) -> Route:  # noqa: ARG002  # rows are not scored
        """Expect one request, with the seed on the sheet."""
        return even_draw_route(self.size, agreed.seeds, distinct=self.draws == "distinct")


class AllRows(msgspec.Struct, frozen=True, tag_field="kind", tag="all", forbid_unknown_fields=True):
    """Take every row once with weight 1: what a coreset is compared with.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> federation = cn.Federation(cn.split_columns(np.eye(8), None, [4, 4]))
    >>> len(federation.coreset(cn.KMeans(n_clusters=2), cn.AllRows()).coreset)
    8
    """

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
        rng: np.random.Generator,  # noqa: ARG002
        row_weights: PerRow | None = None,
    ) -> Script[Coreset]:
        """Tell the parties to take all rows."""
        return use_all_rows(roster, row_weights)

    def route(self, rule: ScoreRule, agreed: Agreed) -> Route:  # noqa: ARG002  # there is nothing to choose
        """Expect one request."""
        return Ask(UseAllRows)
