"""The public face: the federation. Validates once, then assembles the layers below."""

import warnings
from collections.abc import Iterable
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade import door
from colonnade.contracts import Roster, Task
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.diagnostics import certifying
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.over_parties import diagnose, with_cost
from colonnade.diagnostics.records import Diagnosis
from colonnade.errors import AssumptionWarning, InputError
from colonnade.evaluation.reports import ClusteringReport, RegressionReport
from colonnade.kernels.arrays import Floats, Rows
from colonnade.ledger import Ledger
from colonnade.options import whole_number
from colonnade.protocol.conductor import RoundListener
from colonnade.protocol.session import Delivery
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run
from colonnade.sampling import AnySampler
from colonnade.sampling.shared import sample_size
from colonnade.solvers import AnySolver, Central
from colonnade.stage import MakeTransport, Stage
from colonnade.tasks import AnyModel, AnyTask, KMeansModel, jobs
from colonnade.transports.inprocess import InProcess

M = TypeVar("M")
T = TypeVar("T")


class Federation:
    """Parties that learn together, all in this process; `connect` makes one of parties on other machines.

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
        transport: MakeTransport = InProcess,
        on_round: RoundListener = lambda _phase, _number: None,
    ) -> None:
        parties = door.check_parties(parties)
        self._stage = Stage.here(parties, door.identities(parties), transport, on_round)

    @classmethod
    def connect(
        cls, path: str | PathLike[str], *, on_round: RoundListener = lambda _phase, _number: None
    ) -> "Federation":
        """Be the server: listen, wait until all parties have dialled in, and let them learn together.

        A run that was cut off is resumed where it is asked for again with the same options and seed.

        Parameters
        ----------
        path : str or path-like
            federation.toml.
        on_round : callable
            Told the phase and the number of each round before it starts.

        Returns
        -------
        Federation
            Use it in a ``with`` block, or `close` it: parties wait for that.
        """
        federation = cls.__new__(cls)
        federation._stage = Stage.connected(path, on_round)
        return federation

    @property
    def roster(self) -> Roster:
        """The parties and their columns."""
        return self._stage.roster

    @property
    def ledger(self) -> Ledger:
        """Every message sent so far."""
        return self._stage.ledger

    def close(self) -> None:
        """Let parties on other machines go. In one process it does nothing."""
        self._stage.close(None)

    def __enter__(self) -> "Federation":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stage.close(error)

    def coreset(
        self, task: Task[object], sampler: AnySampler, *, split: AnySplit | None = None, seed: int = 0
    ) -> Run[None]:
        """Agree on a coreset and stop there.

        Parameters
        ----------
        task : Regression or KMeans
            What the coreset is for.
        sampler : ImportanceSampling, UniformSampling or AllRows
            How to draw it.
        split : HoldOut or SplitBy, optional
            Which rows to hold out: none of them is drawn.
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
        door.check_kind("sampler", sampler, AnySampler)
        door.check_job(task, self.roster, sampler=sampler, split=split)
        seed = door.seed_number(seed)
        what = {"task": task, "sampler": sampler, "split": split, "seed": seed}
        return self._stage.learn("coreset", jobs.draw(task, sampler, split, self.roster, seed), what)

    def fit(
        self,
        task: Task[M],
        *,
        sampler: AnySampler | None = None,
        coreset: Coreset | None = None,
        solver: AnySolver = Central(),  # noqa: B008  # frozen
        split: AnySplit | None = None,
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
        solver : Central, DistDim or Saga
            How to learn.
        split : HoldOut or SplitBy, optional
            Which rows to hold out: nothing is learned from them. ``evaluate(run.model, split=run.split)`` uses them.
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
        source = door.either(sampler, coreset)
        door.check_kind("solver", solver, AnySolver)
        door.check_job(task, self.roster, sampler=sampler, coreset=coreset, split=split)
        solver.check(task)
        door.warn_of_disclosure(sampler, solver)
        seed = door.seed_number(seed)
        what = {"task": task, "sampler": sampler, "solver": solver, "split": split, "seed": seed, "coreset": coreset}
        return self._stage.learn("fit", jobs.learn(task, source, solver, split, self.roster, seed), what)

    def predict(self, model: AnyModel, *, rows: npt.ArrayLike | None = None, to: str | None = None) -> Floats | Rows:
        """Predict rows through the parties: each sends the part that its own columns make of every row.

        Parameters
        ----------
        model : LinearModel or KMeansModel
            Learned from these parties' columns.
        rows : array_like of int, shape (m,), optional
            Which rows, in any order; all of them if left out.
        to : str, optional
            A party that is given the predictions too, in the order of the rows: `received` shows what it holds.

        Returns
        -------
        ndarray, shape (m,)
            Predicted values, or the index of each row's nearest centre, in the order of `rows`.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + 3.0, [1, 1]))
        >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows())
        >>> federation.predict(run.model, rows=[4, 0]).round(6).tolist()
        [229.0, 5.0]
        """
        door.check_model(model, self.roster)
        if to is not None:
            door.check_party(to, self.roster)
        wanted = None if rows is None else door.row_ids(rows, self.roster.n_rows)
        order = None if wanted is None else np.argsort(wanted, kind="stable")
        ascending = None if wanted is None else wanted[order]
        script = jobs.predict(model, ascending, to, self.roster)
        predictions = self._stage.play(script, "predict", model=model, rows=ascending, to=to)
        return predictions if order is None else predictions[np.argsort(order, kind="stable")]

    def received(self, party: str) -> Delivery | None:
        """Show the predictions that were last delivered to a party of this process.

        Parameters
        ----------
        party : str
            Its name.

        Returns
        -------
        Delivery or None
            Rows, ascending, and their predictions.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + 3.0, [1, 1]))
        >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows())
        >>> _ = federation.predict(run.model, rows=[4, 0], to="party2")
        >>> federation.received("party2").rows.tolist()
        [0, 4]
        """
        door.check_party(party, self.roster)
        return self._stage.received(party)

    def evaluate(
        self, model: AnyModel, *, rows: int | None = None, split: AnySplit | None = None, seed: int = 0
    ) -> RegressionReport | ClusteringReport:
        """Count a model's cost on all rows through the parties, or estimate it from a sample.

        Parameters
        ----------
        model : LinearModel or KMeansModel
            Learned from these parties' columns.
        rows : int, optional
            Evaluate so many rows, drawn evenly with replacement, and give a 95 % interval; all of them if left out.
        split : HoldOut or SplitBy, optional
            Evaluate only rows that this holds out.
        seed : int
            Draws these rows.

        Returns
        -------
        RegressionReport or ClusteringReport
            Costs, errors, sizes.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + 3.0, [1, 1]))
        >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows())
        >>> round(federation.evaluate(run.model).r2, 6)
        1.0
        """
        door.check_model(model, self.roster)
        door.check_can_evaluate(model, self.roster)
        size = None if rows is None else sample_size(rows)
        door.check_kind("split", split, AnySplit | None)
        seed = door.seed_number(seed)
        script = jobs.evaluate(model, size, split, self.roster, seed)
        return self._stage.play(script, "evaluate", model=model, rows=size, split=split, seed=seed)

    def diagnose(
        self,
        task: AnyTask,
        *,
        sampler: AnySampler | None = None,
        coreset: Coreset | None = None,
        model: KMeansModel | None = None,
        rows: int | None = None,
        pairs: int = 2000,
        seed: int = 0,
    ) -> Diagnosis:
        """Measure what the theory assumes of the data, and how good a coreset is, from rows the parties show in part.

        Parameters
        ----------
        task : Regression or KMeans
            Whose assumptions.
        sampler, coreset : optional
            The coreset to measure, or how to draw it; neither for the assumptions alone.
        model : KMeansModel, optional
            For k-means: centres near these are tried too.
        rows : int, optional
            How many rows to look at; if left out, 2,000, or ten for each column if that is more.
        pairs : int
            For k-means: how many pairs of rows to compare, at most one a row.
        seed : int
            Decides all draws. A sampler draws the rows that `fit` with this seed would.

        Returns
        -------
        Diagnosis
            Numbers; printed, plain words. What it cost and what was shown is in it.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.random.default_rng(0).normal(size=(3000, 6))
        >>> federation = cn.Federation(cn.split_columns(X, None, [4, 2]))
        >>> found = federation.diagnose(cn.KMeans(n_clusters=3), pairs=500)
        >>> found.tau.party, found.tau.value > 2, found.sensitivity.total, found.reveals
        ('party1', True, 16.0, ('totals', 'row ids', 'scores', 'predictions'))
        """
        if sampler is not None and coreset is not None:
            raise InputError("diagnose measures one coreset. Pass a sampler or a coreset, not both.")
        door.check_job(task, self.roster, sampler=sampler, coreset=coreset)
        door.check_kind("k-means model", model, KMeansModel | None)
        if model is not None:
            door.check_model(model, self.roster)
        size = None if rows is None else sample_size(rows)
        pairs = whole_number("pairs", pairs, least=2, example="Pass for instance pairs=2000.")
        seed, source = door.seed_number(seed), coreset if sampler is None else sampler
        script = diagnose(task, self.roster, source, model, size, pairs, seed)
        what = {"task": task, "source": source, "model": model, "rows": size, "pairs": pairs, "seed": seed}
        position = len(self.ledger)
        found = with_cost(self._stage.play(script, "diagnose", **what), self.ledger.since(position))
        for concern in found.concerns:
            warnings.warn(concern, AssumptionWarning, stacklevel=2)
        return found

    def certify(self, run: Run[Any], *, rows: int = 600, seed: int = 1) -> Certificate:
        """Say what a run's model costs on all rows, and how far from the best it can be, from rows it has not seen.

        Parameters
        ----------
        run : Run
            With a model, of these parties.
        rows : int
            How many rows to draw for it, by the scores. Of each the parties send 16 bits, for k-means 16 a centre.
        seed : int
            Draws them, apart from whatever the run drew.

        Returns
        -------
        Certificate
            Numbers; printed, plain words. What it cost and what was shown is in it.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.random.default_rng(0).normal(size=(5000, 4))
        >>> y = X @ np.ones(4) + np.random.default_rng(1).normal(size=5000)
        >>> federation = cn.Federation(cn.split_columns(X, y, [2, 2]))
        >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=500))
        >>> found = federation.certify(run)
        >>> found.trusted, found.relative_excess < 0.05, found.reveals
        (True, True, ('totals', 'row ids', 'scores', 'predictions', 'moments'))
        """
        certified = door.certified(run, self.roster)
        size = sample_size(rows)
        certifying.check_rows(certified.model, self.roster, size)
        seed = door.seed_number(seed)
        script = certifying.certify(certified, self.roster, size, seed)
        what = {"task": run.task, "model": run.model, "split": run.split, "rows": size, "seed": seed}
        what |= {"drawn_by": run.coreset.sampler, "precision": run.precision}
        position = len(self.ledger)
        found = self._stage.play(script, "certify", **what)
        return certifying.with_cost(found, self.ledger.since(position), run.ledger.bytes)

    def __repr__(self) -> str:
        roster = self.roster
        return f"Federation({', '.join(roster.names)}; {roster.n_rows} rows, {len(roster.feature_names)} features)"
