"""The public face: parties and the federation. Validates once, then assembles the layers below."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from colonnade.catalogue import codec, party_session
from colonnade.contracts import Roster, Script, Task, Transport
from colonnade.coreset import Coreset
from colonnade.data.tables import read_table
from colonnade.errors import AlignmentError, InputError, UnsupportedError
from colonnade.ledger import SERVER, Ledger
from colonnade.protocol.conductor import Conductor, RoundListener
from colonnade.protocol.hello import hello
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import PartySession
from colonnade.run import Run, current_versions
from colonnade.sampling import AnySampler
from colonnade.sampling.shared import share_coreset
from colonnade.solvers import AnySolver, Central
from colonnade.tasks import AnyTask
from colonnade.transports.inprocess import InProcess

M = TypeVar("M")


class Party:
    """An organisation and its columns.

    Parameters
    ----------
    name : str
        Unique in the federation.
    data : array_like of shape (n_rows, n_columns), pandas / polars / pyarrow table, or path of a Parquet or CSV file
        Numbers without gaps; every party holds the same rows in the same order.
    label : str or array_like of shape (n_rows,), optional
        At the label party: the name of the label's column, or, beside a plain array, the labels.
    key : str, optional
        The name of a column that identifies rows. It is no feature; only its digest is told, to check that all
        parties that name a key hold the same rows in the same order.
    policy : Policy, optional
        What this party never reveals.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> cn.Party("airline", np.eye(3), label=np.arange(3.0))
    Party('airline', 3 rows, 3 features, label 'airline_label')
    """

    def __init__(
        self,
        name: str,
        data: object,
        *,
        label: str | npt.ArrayLike | None = None,
        key: str | None = None,
        policy: Policy | None = None,
    ) -> None:
        if not isinstance(name, str) or not name.strip() or name == SERVER:
            raise InputError(f"A party cannot be called {name!r}. Give it a name of its own, not {SERVER!r}.")
        self.name = name
        self.table = read_table(name, data, label=label, key=key)
        self.policy = policy or Policy()

    def __repr__(self) -> str:
        table = self.table
        label = "" if table.label_name is None else f", label {table.label_name!r}"
        return f"Party({self.name!r}, {table.n_rows} rows, {len(table.feature_names)} features{label})"


def split_columns(X: npt.ArrayLike, y: npt.ArrayLike | None, widths: Sequence[int]) -> list[Party]:
    """Make parties of one matrix: the first columns to the first party, and so on; y to the last, as in the paper.

    Parameters
    ----------
    X : array_like, shape (n_rows, n_features)
        All features.
    y : array_like, shape (n_rows,), or None
        Labels.
    widths : sequence of int
        How many columns each party holds; they add up to n_features.

    Returns
    -------
    list of Party
        Named party1, party2, ...

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> [party.name for party in cn.split_columns(np.eye(6), np.ones(6), [2, 2, 2])]
    ['party1', 'party2', 'party3']
    """
    matrix = np.asarray(X)
    if matrix.ndim != 2 or sum(widths) != matrix.shape[1] or not widths or min(widths) < 1:
        raise InputError(
            f"widths {list(widths)} must be positive and add up to the columns of X, whose shape is {matrix.shape}. "
            "Pass one width a party."
        )
    blocks = np.split(matrix, np.cumsum(widths)[:-1], axis=1)
    last = len(blocks) - 1
    return [Party(f"party{i + 1}", block, label=y if i == last else None) for i, block in enumerate(blocks)]


class Federation:
    """Parties that learn together, all in this process.

    Parameters
    ----------
    parties : iterable of Party
        In the order that becomes the order of the model's columns.
    transport : callable
        Makes the transport from the parties' sessions: `InProcess`, or `Loopback` to pass all through the wire codec.
    on_round : callable
        Told the phase and the number of each round before it starts.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> airline = cn.Party("airline", rng.normal(size=(300, 2)), label=rng.normal(size=300))
    >>> weather = cn.Party("weather", rng.normal(size=(300, 3)))
    >>> federation = cn.Federation([airline, weather])
    >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=100), seed=0)
    >>> run.model.coef_.shape
    (5,)
    """

    def __init__(
        self,
        parties: Iterable[Party],
        *,
        transport: Callable[[Mapping[str, PartySession]], Transport] = InProcess,
        on_round: RoundListener = lambda _phase, _number: None,
    ) -> None:
        parties = list(parties)
        _check_parties(parties)
        sessions = {party.name: party_session(party.table, party.policy) for party in parties}
        self.ledger = Ledger()
        self._conductor = Conductor(transport(sessions), codec(), self.ledger, on_round)
        self.roster: Roster = self._conductor.play(hello(sessions))

    def coreset(self, task: Task[object], sampler: AnySampler, *, seed: int = 0) -> Run[None]:
        """Agree on a coreset and stop there.

        Parameters
        ----------
        task : Regression or KMeans
            What the coreset is for.
        sampler : ImportanceSampling, UniformSampling or AllRows
            How to draw it.
        seed : int
            Decides every draw.

        Returns
        -------
        Run
            Without a model.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9), np.arange(9.0), [3, 3, 3]))
        >>> federation.coreset(cn.Regression(), cn.ImportanceSampling(size=5)).ledger.units
        41
        """
        self._check(task, seed, sampler=sampler)
        return self._run(task, sampler, None, seed, self._draw(task, sampler, seed))

    def fit(
        self,
        task: Task[M],
        *,
        sampler: AnySampler | None = None,
        coreset: Coreset | None = None,
        solver: AnySolver = Central(),  # noqa: B008  # frozen
        seed: int = 0,
    ) -> Run[M]:
        """Learn a model on a coreset.

        Parameters
        ----------
        task : Regression or KMeans
            What to learn.
        sampler : ImportanceSampling, UniformSampling or AllRows, optional
            How to draw the coreset. Either this or `coreset`.
        coreset : Coreset, optional
            One made before on the same rows: nothing is drawn anew (Theorem 2.5).
        solver : Central
            How to learn.
        seed : int
            With the data and the options it decides the result bit for bit.

        Returns
        -------
        Run
            Model, coreset and ledger.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9), np.arange(9.0), [3, 3, 3]))
        >>> first = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=50))
        >>> second = federation.fit(cn.Regression(l2=1.0), coreset=first.coreset)
        >>> first.coreset.rows.tolist() == second.coreset.rows.tolist()
        True
        """
        source = coreset if sampler is None else sampler
        if source is None or (sampler is not None and coreset is not None):
            raise InputError(
                "fit needs a sampler or a coreset, and not both. "
                "Pass for instance sampler=ImportanceSampling(size=2000), or coreset=run.coreset."
            )
        self._check(task, seed, sampler=sampler, coreset=coreset, solver=solver)
        return self._run(task, sampler, solver, seed, self._learn(task, source, solver, seed))

    def _draw(self, task: Task[object], source: AnySampler | Coreset, seed: int) -> Script[tuple[Coreset, None]]:
        coreset = yield from self._agree(task, source, _sampling_rng(seed))
        return coreset, None

    def _learn(
        self, task: Task[M], source: AnySampler | Coreset, solver: AnySolver, seed: int
    ) -> Script[tuple[Coreset, M]]:
        coreset = yield from self._agree(task, source, _sampling_rng(seed))
        model = yield from solver.solve(task, self.roster, coreset, _solving_rng(seed))
        return coreset, model

    def _agree(self, task: Task[object], source: AnySampler | Coreset, rng: np.random.Generator) -> Script[Coreset]:
        if isinstance(source, Coreset):
            return share_coreset(self.roster, source)
        return source.sample(self.roster, task.score_rule(), rng)

    def _run(
        self,
        task: Task[object],
        sampler: AnySampler | None,
        solver: AnySolver | None,
        seed: int,
        script: Script[tuple[Coreset, M]],
    ) -> Run[M]:
        position, started = len(self.ledger), perf_counter()
        coreset, model = self._conductor.play(script)
        seconds = perf_counter() - started
        ledger = self.ledger.since(position)
        return Run(task, sampler, solver, seed, self.roster, coreset, model, ledger, seconds, current_versions())

    def _check(
        self,
        task: Task[object],
        seed: int,
        *,
        sampler: object = None,
        coreset: object = None,
        solver: object = None,
    ) -> None:
        _check_kind("task", task, AnyTask)
        _check_kind("sampler", sampler, AnySampler | None)
        _check_kind("coreset", coreset, Coreset | None)
        _check_kind("solver", solver, AnySolver | None)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seed must be a whole number of zero or more, got {seed!r}. Pass for instance seed=0.")
        task.check(self.roster)
        if isinstance(coreset, Coreset) and coreset.n_rows != self.roster.n_rows:
            raise AlignmentError(
                f"The coreset was made of {coreset.n_rows} rows; these parties hold {self.roster.n_rows}. "
                "Use it with the parties it came from."
            )

    def __repr__(self) -> str:
        roster = self.roster
        return f"Federation({', '.join(roster.names)}; {roster.n_rows} rows, {len(roster.feature_names)} features)"


# Two streams of one seed: the solver's draws do not depend on how the coreset came about.
def _sampling_rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 0])


def _solving_rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 1])


def _check_parties(parties: list[Party]) -> None:
    if not parties:
        raise InputError("A federation needs at least one party. Pass a list of Party.")
    for party in parties:
        _check_kind("party", party, Party)
    names = [party.name for party in parties]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"Two parties are called {duplicates[0]!r}. Give each its own name.")


def _check_kind(role: str, value: object, kinds: Any) -> None:
    if not isinstance(value, kinds):
        choices = " | ".join(kind.__name__ for kind in get_args(kinds) or (kinds,) if kind is not type(None))
        raise UnsupportedError(f"{value!r} is not a {role}. Pass one of: {choices}.")
