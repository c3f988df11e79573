"""SecureGram: the server learns the weighted Gram matrix of the coreset, and never a row (one exchange, no iterations).

Each party tells the moments of its own columns, and a uniform share of its rows in an orthonormal basis, of which the
other parties hold the other share (`colonnade.kernels.shares`). What the server then lacks of the products across
parties, pairs of parties tell it under masks that cancel. If the server and a party join forces they can put the two
shares together: that they do not is the assumption.
"""

from typing import ClassVar, Literal, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Agreed, LinearTask, Roster, Script, Solution, Task
from colonnade.coreset import Coreset
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.gram import merge
from colonnade.messages import Reveals
from colonnade.options import flag
from colonnade.privacy.pair_keys import check_enough_parties, secure_route
from colonnade.routes import Ask, Route
from colonnade.solvers.gram.ckks.messages import AskDecryptedProducts, AskEncryptedProducts, AskEncryptedRows
from colonnade.solvers.gram.ckks.server import gram_by_ckks
from colonnade.solvers.gram.shares.messages import AskGramShares, AskSealedSeeds
from colonnade.solvers.gram.shares.server import gram_by_shares
from colonnade.solvers.standard_errors import errors_of_sums

M = TypeVar("M")


class SecureGram(msgspec.Struct, frozen=True, tag_field="kind", tag="gram", forbid_unknown_fields=True):
    """Solve from the weighted Gram matrix of the coreset's columns, which is all that the server learns of its rows.

    For regression with any penalties, also those chosen by "cv" (the server then learns the Gram matrix of each fold).
    The model is that of `Central`. Needs the extra ``colonnade[secure]`` and three parties or more. With shares, the
    server must not join forces with a party: together they have the rows of the others.

    Parameters
    ----------
    products : "shares" or "ckks"
        How products of columns of different parties are computed: by additive secret shares, or by homomorphic
        encryption. The latter needs no assumption that the server and a curious party do not join forces, but takes
        five times the bytes, a second instead of a tenth, keeps eight digits of a product instead of fifteen, and
        cannot choose a penalty by "cv".
    allow_two_parties : bool
        Whether it is good enough with two parties: they are told the rows' weights, from which each can work out the
        other's scores.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 6))
    >>> y = X @ [1.0, 2.0, 3.0, -1.0, -2.0, -3.0] + rng.normal(size=500)
    >>> federation = cn.Federation(cn.split_columns(X, y, [2, 2, 2]))
    >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=200), solver=cn.SecureGram())
    >>> run.disclosure.headline
    'Nobody was shown features or labels of any row.'
    >>> central = federation.fit(cn.Regression(l2=0.1), coreset=run.coreset)
    >>> np.allclose(run.model.coef_, central.model.coef_, rtol=1e-6)
    True
    """

    products: Literal["shares", "ckks"] = "shares"
    allow_two_parties: bool = False

    shows: ClassVar[tuple[Reveals, ...]] = ()

    def __post_init__(self) -> None:
        if self.products not in ("shares", "ckks"):
            raise InputError(f'products must be "shares" or "ckks", got {self.products!r}. Pass one of the two.')
        force_setattr(self, "allow_two_parties", flag("allow_two_parties", self.allow_two_parties))

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Take linear tasks, of enough parties for the rows of one to be hidden from a server that is no party."""
        linear = _linear(task)
        if self.products == "ckks":
            _check_ckks(linear)
        check_enough_parties(roster, "SecureGram", allow_two_parties=self.allow_two_parties)
        if self.products == "shares" and run_by is not None:
            raise InputError(
                f"The server is run by {run_by!r}, a party: it would hold both shares of the others' rows, and so "
                'these. Use SecureGram(products="ckks"), or a server that is no party.'
            )

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Gather the Gram matrix, of each fold if there are any, and solve from it."""
        self.check(task, roster, None)
        linear = _linear(task)
        if self.products == "ckks":
            parts = yield from gram_by_ckks(roster, coreset)
        else:
            parts = yield from gram_by_shares(roster, coreset, linear.fold_seed(rng))
        model, cost = linear.fit_summaries(parts, coreset.total_weight, roster)
        summed = merge(parts)
        problem = summed.problem(fit_intercept=linear.fit_intercept)
        return Solution(model, {"cost": cost}, errors=errors_of_sums(linear, model, problem, summed.weight, coreset))

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect one question, of folds as the sheet's seed deals them; again only where a key is lost."""
        columns = {card.name: card.n_features + (card.label_name is not None) for card in agreed.roster.cards}
        asked = {"n_columns": tuple(columns[name] for name in sorted(columns))}
        if self.products == "ckks":
            return secure_route(Ask(AskEncryptedRows, **asked), Ask(AskEncryptedProducts), Ask(AskDecryptedProducts))
        seed = _linear(task).fold_seed(np.random.default_rng(agreed.seed))
        return secure_route(Ask(AskSealedSeeds), Ask(AskGramShares, fold_seed=seed, **asked))


def _check_ckks(task: LinearTask[object]) -> None:
    try:
        task.penalties()
    except UnsupportedError as error:
        raise UnsupportedError(
            'SecureGram(products="ckks") cannot choose a penalty by "cv". Pass numbers, or products="shares".'
        ) from error


def _linear(task: Task[M]) -> LinearTask[M]:
    if not isinstance(task, LinearTask):
        raise UnsupportedError(f"SecureGram cannot do {type(task).__name__}. Use SecureLloyd(), or Central().")
    return task
