"""The public face: the federation. Validates once, then assembles the layers below."""

from collections.abc import Iterable
from os import PathLike
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from colonnade import door
from colonnade.assessment import Assessment
from colonnade.contracts import Task
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.evaluation.reports import ClusteringReport, RegressionReport
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.fixed_codes import checked_bits
from colonnade.planning.outcome import with_plan
from colonnade.planning.records import Plan
from colonnade.privacy.primitives import check_available
from colonnade.protocol.conductor import RoundListener
from colonnade.protocol.session import Delivery
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run
from colonnade.sampling import AnySampler
from colonnade.sampling.size import sample_size
from colonnade.solvers import AnySolver, Central
from colonnade.stage import MakeTransport, Stage
from colonnade.tasks import AnyModel, jobs
from colonnade.transports.inprocess import InProcess

M = TypeVar("M")
T = TypeVar("T")


class Federation(Assessment):
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
        sampler = self._stage.settled(sampler)
        door.check_job(task, self.roster, sampler=sampler, split=split, run_by=self.ledger.run_by)
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
        plan: Plan | None = None,
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
        solver : Central, CompactCentral, DistDim, Saga, SecureGram or SecureLloyd
            How to learn.
        split : HoldOut or SplitBy, optional
            Which rows to hold out: nothing is learned from them. ``evaluate(run.model, split=run.split)`` uses them.
        plan : Plan, optional
            Of `plan`, for this task and these parties: it says how to draw, how to learn and which rows to hold out.
            What its pilot sent stands on the run's ledger too.
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
        if plan is not None:
            door.check_plan(plan, task, self.roster, sampler=sampler, coreset=coreset, solver=solver, split=split)
            sampler, solver, split = plan.sampler, plan.solver, plan.split
        sampler = None if sampler is None else self._stage.settled(sampler)
        solver = self._stage.settled(solver)
        source, run_by = door.either(sampler, coreset), self.ledger.run_by
        door.check_job(task, self.roster, sampler=sampler, solver=solver, coreset=coreset, split=split, run_by=run_by)
        apart = self._stage.between_machines
        door.warn_of_disclosure(sampler, solver, between_machines=apart)
        seed = door.seed_number(seed)
        what = {"task": task, "sampler": sampler, "solver": solver, "split": split, "seed": seed, "coreset": coreset}
        run = self._stage.learn("fit", jobs.learn(task, source, solver, split, self.roster, seed), what)
        return run if plan is None else with_plan(run, plan)

    def predict(
        self, model: AnyModel, *, rows: npt.ArrayLike | None = None, to: str | None = None, bits: int | None = None
    ) -> Floats | Rows:
        """Predict rows through the parties: each sends the part that its own columns make of every row.

        Parameters
        ----------
        model : LinearModel or KMeansModel
            Learned from these parties' columns.
        rows : array_like of int, shape (m,), optional
            Which rows, in any order; all of them if left out.
        to : str, optional
            A party that is given the predictions too, in the order of the rows: `received` shows what it holds.
        bits : int, optional
            Let parts travel with so many bits, 4 to 32, instead of 64. Right on average, and off by at most the range
            of a party's parts over ``2**bits - 4``, for each party; a row between two centres may fall to either.

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
        bits = checked_bits(bits)
        script = jobs.predict(model, ascending, to, bits, self.roster)
        predictions, _ = self._stage.play(script, "predict", model=model, rows=ascending, to=to, bits=bits)
        return predictions if order is None else predictions[np.argsort(order, kind="stable")]

    def deliver(self, model: AnyModel, to: str, *, rows: npt.ArrayLike | None = None) -> None:
        """Let one party learn predictions, and nobody else: the others' parts reach it in sum, under masks.

        Neither the server nor the caller sees them, nor any party's part; `received` shows them where the party is in
        this process. Needs the extra ``colonnade[secure]``.

        Parameters
        ----------
        model : LinearModel or KMeansModel
            Learned from these parties' columns.
        to : str
            The party.
        rows : array_like of int, shape (m,), optional
            Which rows; all of them if left out.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.arange(18.0).reshape(6, 3) ** 2
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0, 1.0] + 3.0, [1, 1, 1]))
        >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.AllRows())
        >>> federation.deliver(run.model, "party2", rows=[4, 0])
        >>> np.allclose(federation.received("party2").predictions, run.model.predict(X[[0, 4]]))
        True
        """
        door.check_model(model, self.roster)
        door.check_party(to, self.roster)
        check_available()
        ascending = None if rows is None else np.sort(door.row_ids(rows, self.roster.n_rows))
        script = jobs.deliver_in_secret(model, ascending, to, self.roster)
        self._stage.play(script, "deliver", model=model, rows=ascending, to=to)

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
        self,
        model: AnyModel,
        *,
        rows: int | None = None,
        split: AnySplit | None = None,
        bits: int | None = None,
        by: str | None = None,
        seed: int = 0,
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
        bits : int, optional
            Let parts travel with so many bits, 4 to 32, instead of 64; the report's `rounded_by` bounds the error.
        by : str, optional
            A party that evaluates in the server's place, ten rows or more: the others' parts reach it under masks that
            cancel in their sum, and the server learns sums over all rows. The party learns residuals, or distances to
            all centres, row by row. Needs the extra ``colonnade[secure]``.
        seed : int
            Draws these rows, and the dither that parts are rounded with.

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
        bits = checked_bits(bits)
        if by is None:
            script = jobs.evaluate(model, size, split, bits, self.roster, seed)
        else:
            door.check_evaluator(by, bits, self.roster)
            script = jobs.evaluate_in_secret(model, size, split, by, self.roster, seed)
        what = {"model": model, "rows": size, "split": split, "bits": bits, "by": by, "seed": seed}
        report, _ = self._stage.play(script, "evaluate", **what)
        return report

    def __repr__(self) -> str:
        roster = self.roster
        return f"Federation({', '.join(roster.names)}; {roster.n_rows} rows, {len(roster.feature_names)} features)"
