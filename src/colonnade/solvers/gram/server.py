"""SecureGram: the server learns the weighted Gram matrix of the coreset, and never a row (one exchange, no iterations).

Each party tells the moments of its own columns, and a uniform share of its rows in an orthonormal basis, of which the
other parties hold the other share (`colonnade.kernels.shares`). What the server then lacks of the products across
parties, pairs of parties tell it under masks that cancel. If the server and a party join forces they can put the two
shares together: that they do not is the assumption.
"""

from typing import Any, ClassVar, Literal, Self, TypeVar

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Agreed, LinearTask, LogisticTask, Roster, Script, Solution, Task
from colonnade.coreset import Coreset, selection_of
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.gram import merge
from colonnade.kernels.selections import CountedRows
from colonnade.messages import Reveals
from colonnade.options import flag, whole_number
from colonnade.privacy.pair_keys import check_enough_parties, secure_route
from colonnade.protocol.windows import Windows
from colonnade.routes import Ask, Route, cut_short, either, some
from colonnade.solvers.gram.ckks.messages import AskDecryptedProducts, AskEncryptedProducts, AskEncryptedRows
from colonnade.solvers.gram.ckks.server import gram_by_ckks
from colonnade.solvers.gram.question import columns_of, comes_at_once
from colonnade.solvers.gram.shares.messages import DEALER, AskGramShares, AskSealedSeeds, AskStepShares
from colonnade.solvers.gram.shares.server import gram_by_shares
from colonnade.solvers.gram.steps.kept import MOST_STEPS, most_steps
from colonnade.solvers.gram.steps.messages import AskStepColumn, AskStepPart
from colonnade.solvers.gram.steps.server import classify_by_shares
from colonnade.solvers.gram.windows.messages import AskGramBlocks, AskGramWindows, AskWindowShare
from colonnade.solvers.gram.windows.server import gram_in_windows
from colonnade.solvers.standard_errors import errors_of_sums

M = TypeVar("M")


class SecureGram(msgspec.Struct, frozen=True, tag_field="kind", tag="gram", forbid_unknown_fields=True):
    """Solve from the weighted Gram matrix of the coreset's columns, which is all that the server learns of its rows.

    For regression with any penalties, also those chosen by "cv" (the server then learns the Gram matrix of each fold).
    The model is that of `Central`. Needs the extra ``colonnade[secure]`` and three parties or more. With shares, the
    server must not join forces with a party: together they have the rows of the others. All rows of a long table are
    shared in windows, unless a penalty is to be chosen: nobody holds more than one.

    For classification of two classes, with shares and without l1, the Gram matrix is followed by steps. In each of them
    the label party is shown one number of every row of the coreset, the others' columns in some direction, summed over
    these parties; the server learns a gradient, a number for each column of the others. The model is nearly that of
    `Central`: the fact `gain` says by which part of the objective one more step would lower it, about.

    Parameters
    ----------
    products : "shares" or "ckks"
        How products of columns of different parties are computed: by additive secret shares, or by homomorphic
        encryption. The latter needs no assumption that the server and a curious party do not join forces, but takes
        five times the bytes, a second instead of a tenth, keeps eight digits of a product instead of fifteen, and
        cannot choose a penalty by "cv".
    allow_two_parties : bool
        Whether it is good enough with two parties: they are told the rows' weights, from which each can work out the
        other's scores. In a classification the label party is then shown directions of one other's columns.
    steps : int
        For classification: how many steps at most, 1 to 30. It is also less than the number of the other parties'
        columns: as many directions as that would be the columns. Steps end where little is to be gained.

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
    steps: int = 12

    shows: ClassVar[tuple[Reveals, ...]] = ()

    def __post_init__(self) -> None:
        if self.products not in ("shares", "ckks"):
            raise InputError(f'products must be "shares" or "ckks", got {self.products!r}. Pass one of the two.')
        force_setattr(self, "allow_two_parties", flag("allow_two_parties", self.allow_two_parties))
        steps = whole_number("steps", self.steps, least=1, example="Pass for instance steps=12.")
        if steps > MOST_STEPS:
            raise InputError(f"steps must be {MOST_STEPS} at most, got {steps}. Pass for instance steps=12.")
        force_setattr(self, "steps", steps)

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Take linear tasks, of enough parties for the rows of one to be hidden from a server that is no party."""
        if isinstance(task, LogisticTask):
            self._check_logistic(task, roster)
        elif self.products == "ckks":
            _check_ckks(_linear(task))
        else:
            _linear(task)
        check_enough_parties(roster, "SecureGram", allow_two_parties=self.allow_two_parties)
        if self.products == "shares" and run_by is not None:
            raise InputError(
                f"The server is run by {run_by!r}, a party: it would hold both shares of the others' rows, and so "
                'these. Use SecureGram(products="ckks"), or a server that is no party.'
            )

    def _check_logistic(self, task: LogisticTask[object], roster: Roster) -> None:
        if self.products == "ckks":
            raise UnsupportedError('SecureGram(products="ckks") solves regressions only. Pass products="shares".')
        _, l1 = task.penalties()
        if l1:
            raise UnsupportedError("SecureGram solves classifications without l1. Pass l1=0, or use Central().")
        if task.classes is not None and len(task.classes) > 2:
            raise UnsupportedError(
                f"SecureGram tells two classes apart, not {len(task.classes)}. Use Central(), or CompactCentral()."
            )
        if roster.label_party is not None and self._steps(roster) < 1:
            raise InputError(
                f"Beside {roster.label_party!r}, which has the label, parties have fewer than two columns: a step of "
                "SecureGram would tell it one. Use Central(), or give them more columns."
            )

    def _steps(self, roster: Roster) -> int:
        """Say how many steps there are at most."""
        others = sum(card.n_features for card in roster.cards if card.name != roster.label_party)
        return min(self.steps, most_steps(others))

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Gather the Gram matrix, of each fold if there are any, and solve from it."""
        self.check(task, roster, None)
        if isinstance(task, LogisticTask):
            return (yield from classify_by_shares(task, roster, coreset, self._steps(roster)))
        linear = _linear(task)
        if self.products == "ckks":
            parts = yield from gram_by_ckks(roster, coreset)
        elif (rows := _in_windows(linear, roster, coreset)) is not None:
            parts = yield from gram_in_windows(roster, rows)
        else:
            parts = yield from gram_by_shares(roster, coreset, linear.fold_seed(rng))
        model, cost = linear.fit_summaries(parts, coreset.total_weight, roster)
        summed = merge(parts)
        problem = summed.problem(fit_intercept=linear.fit_intercept)
        return Solution(model, {"cost": cost}, errors=errors_of_sums(linear, model, problem, summed.weight, coreset))

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect one question, of folds as the sheet's seed deals them; again only where a key is lost."""
        columns = columns_of(agreed.roster)
        names = sorted(columns)
        asked: dict[str, object] = {"n_columns": tuple([columns[name] for name in names])}
        if self.products == "ckks":
            return secure_route(Ask(AskEncryptedRows, **asked), Ask(AskEncryptedProducts), Ask(AskDecryptedProducts))
        dealing = (Ask(AskSealedSeeds),) if agreed.party == names[DEALER] else ()
        if isinstance(task, LogisticTask):
            steps = self._steps(agreed.roster)
            is_label_party = agreed.party == agreed.roster.label_party
            step = Ask(AskStepColumn, fit_intercept=task.fit_intercept) if is_label_party else Ask(AskStepPart)
            asked |= {"steps": steps, "to": agreed.roster.label_party}
            return secure_route(*dealing, Ask(AskStepShares, **asked), some(step, most=steps))
        linear, n_rows = _linear(task), agreed.roster.n_rows
        seed = linear.fold_seed(np.random.default_rng(agreed.seed))
        at_once, n_all = Ask(AskGramShares, fold_seed=seed, **asked), sum(columns.values())
        if linear.takes_folds or not agreed.takes_all or comes_at_once(n_rows, n_all):
            return secure_route(*dealing, at_once)
        windows = Windows(n_rows, (Ask(AskWindowShare),), n_all, may_stop=True)
        in_windows = cut_short(Ask(AskGramWindows, **asked), windows, Ask(AskGramBlocks))
        return secure_route(*dealing, either(at_once, in_windows))  # few rows may count


def _in_windows(task: LinearTask[Any], roster: Roster, coreset: Coreset) -> CountedRows | None:
    """Give all rows that count, where they are shared in windows."""
    rows, n_columns = selection_of(coreset), sum(columns_of(roster).values())
    if task.takes_folds or not isinstance(rows, CountedRows) or comes_at_once(len(rows), n_columns):
        return None
    return rows


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
