"""The public face: a federation, and its verbs. Each is validated once, then assembled from the layers below."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from colonnade import validation
from colonnade.alignment import Mode
from colonnade.alignment.records import AlignmentReport
from colonnade.contracts import Model, Report, Roster, Script, Task
from colonnade.coreset import Coreset
from colonnade.data.parties import Party
from colonnade.diagnostics import certifying
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.over_parties import diagnose as diagnose_over_parties
from colonnade.diagnostics.over_parties import rows_to_look_at, with_cost
from colonnade.diagnostics.records import Diagnosis
from colonnade.disclosure import Disclosure
from colonnade.errors import AssumptionWarning, DisclosureWarning, InputError
from colonnade.kernels.fixed_codes import checked_bits
from colonnade.ledger import Ledger
from colonnade.options import whole_number
from colonnade.planning.outcome import with_plan
from colonnade.planning.planned_fit import fit_by_plan
from colonnade.planning.planner import Limits
from colonnade.planning.playing import fit_with, plan_with
from colonnade.planning.records import Plan
from colonnade.privacy.primitives import check_available
from colonnade.protocol.conductor import RoundListener, nobody_listens
from colonnade.protocol.fingerprints import Changed
from colonnade.protocol.session import Delivery
from colonnade.protocol.splits import AnySplit
from colonnade.rehearsal import in_small, stand_ins
from colonnade.run import Run
from colonnade.runtime import MakeTransport, Runtime
from colonnade.sampling import AnySampler
from colonnade.sampling.committed.opening import rows_to_open
from colonnade.sampling.size import sample_size
from colonnade.solvers import AnySolver, Central, CompactCentral
from colonnade.tasks import AnyTask, KMeansModel, jobs
from colonnade.transports.inprocess import InProcess

M = TypeVar("M")
A = TypeVar("A", bound=Model[Any])
R = TypeVar("R", bound=Report)


class Federation:
    """Parties that learn together, all in this process; `connect` makes one of parties on other machines.

    Parameters
    ----------
    parties : iterable of Party
        In the order that becomes the order of the model's columns.
    align : {"exact", "clear", "aided", "curve"}
        How records are matched. "exact": every party holds the same rows in the same order. The others match by the
        parties' keys: "clear" tells the server all keys; "aided" keyed hashes, by a secret that the parties share;
        "curve" what nobody can make of a key without all parties' help. Needs the extra ``colonnade[align]``.
    transport : callable
        Makes a run's transport from the parties' sessions, of which every run has its own: `InProcess`, or `Loopback`
        to pass all through the wire codec.
    on_round : callable
        Told the phase and the number of each round before it starts; while records are aligned, the number has a
        `total`, of how many rounds.

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
        align: Mode = "exact",
        transport: MakeTransport = InProcess,
        on_round: RoundListener = nobody_listens,
    ) -> None:
        self._runtime = Runtime.here(validation.check_parties(parties), transport, on_round, align)

    @classmethod
    def connect(
        cls, path: str | PathLike[str], *, align_again: bool = False, on_round: RoundListener = nobody_listens
    ) -> "Federation":
        """Be the server: listen, wait until all parties have dialled in, and let them learn together.

        A run that was cut off is resumed where it is asked for again with the same options and seed.

        Parameters
        ----------
        path : str or path-like
            federation.toml.
        align_again : bool
            Match records anew, also where the parties have an alignment.
        on_round : callable
            Told the phase and the number of each round before it starts; while records are aligned, the number has a
            `total`, of how many rounds.

        Returns
        -------
        Federation
            Use it in a ``with`` block, or `close` it: parties wait for that.
        """
        federation = cls.__new__(cls)
        federation._runtime = Runtime.connected(path, on_round, again=align_again)
        return federation

    def close(self) -> None:
        """Let parties on other machines go. In one process it does nothing."""
        self._runtime.close(None)

    def acknowledge(self, saved: str | PathLike[str] | None = None) -> None:
        """Say that what came of the runs so far is kept: a server then forgets what parties told it in them.

        Until then, or until it closes without an error, a server that was killed and is asked for the same again makes
        the result of its journals; parties tell nothing twice. Of the last eight runs, that is. In one process it does
        nothing.

        Parameters
        ----------
        saved : str or path-like, optional
            The folder they were saved to: `colonnade board` opens the report of a run from there.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))
        >>> run = federation.coreset(cn.Regression(), cn.UniformSampling(size=4))  # and save it
        >>> federation.acknowledge()
        """
        self._runtime.acknowledge(None if saved is None else str(saved))

    def __enter__(self) -> "Federation":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._runtime.close(error)

    @property
    def alignment(self) -> AlignmentReport | None:
        """How the parties' records were matched; None where they are taken to be the same rows in the same order."""
        return self._runtime.alignment

    @property
    def roster(self) -> Roster:
        """The parties and their columns."""
        return self._runtime.roster

    @property
    def ledger(self) -> Ledger:
        """Every message sent so far."""
        return self._runtime.ledger

    @property
    def sent(self) -> Ledger:
        """What the last call that sent anything sent: its part of the ledger, also where it was refused half-way."""
        return self._runtime.sent

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
        validation.check_kind("sampler", sampler, AnySampler)
        sampler = self._runtime.settled(sampler)
        self._runtime.prepare(task, split)
        validation.check_job(task, self.roster, sampler=sampler, split=split, run_by=self.ledger.run_by)
        seed = validation.seed_number(seed)
        what = {"task": task, "sampler": sampler, "split": split, "seed": seed}
        return self._runtime.learn("coreset", jobs.draw(task, sampler, split, self.roster, seed), what)

    def fit(
        self,
        task: Task[A],
        *,
        sampler: AnySampler | None = None,
        coreset: Coreset | None = None,
        solver: AnySolver = Central(),  # noqa: B008  # frozen
        split: AnySplit | None = None,
        plan: Plan | None = None,
        budget_bytes: int | None = None,
        target_excess: float | None = None,
        seed: int = 0,
    ) -> Run[A]:
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
        budget_bytes : int, optional
            Plan first, and then do it, in one run that sends no more than this: parties agree to pilot and fit at once,
            to at most all rows, rounded or not. In place of a sampler, a coreset, a solver or a plan.
        target_excess : float, optional
            The same for the fewest bytes that are expected to lose this much, 0.02 for 2 %.
        seed : int
            With the data and the options it decides the result bit for bit.

        Returns
        -------
        Run
            Model, coreset and ledger.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9, 3), np.arange(9.0), [1, 1, 1]))
        >>> first = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=50))
        >>> second = federation.fit(cn.Regression(l2=1.0), coreset=first.coreset)
        >>> first.coreset.rows.tolist() == second.coreset.rows.tolist()
        True
        >>> X = np.random.default_rng(0).normal(size=(20_000, 6))
        >>> y = X @ np.ones(6) + np.random.default_rng(1).normal(size=20_000)
        >>> federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
        >>> federation.fit(cn.Regression(), budget_bytes=20_000).ledger.bytes <= 20_000
        True
        """
        if budget_bytes is not None or target_excess is not None:
            validation.check_undecided("limit", sampler=sampler, coreset=coreset, solver=solver, plan=plan)
            run = self._fit_within(task, Limits(budget_bytes, target_excess, None), split, seed)
            return validation.warn_of_few_rows(run)
        validation.check_ways(sampler)
        validation.check_kind("solver", solver, AnySolver)
        if self._runtime.prepares:
            self._runtime.prepare(task, split if plan is None else getattr(plan, "split", None))
        if plan is not None:
            validation.check_plan(plan, task, self.roster, sampler=sampler, coreset=coreset, solver=solver, split=split)
            sampler, solver, split = plan.sampler, plan.solver, plan.split
        sampler, solver = self._runtime.settled(sampler), self._runtime.settled(solver)
        source = validation.either(sampler, coreset)
        ways: dict[str, object] = {"sampler": sampler, "solver": solver, "coreset": coreset, "split": split}
        validation.check_job(task, self.roster, run_by=self.ledger.run_by, **ways)
        validation.warn_of_disclosure(sampler, solver, between_machines=self._runtime.between_machines)
        seed = validation.seed_number(seed)
        what = {"task": task, "sampler": sampler, "solver": solver, "split": split, "seed": seed, "coreset": coreset}
        script = jobs.learn(task, source, solver, split, self.roster, seed)
        if plan is not None:
            script, what = fit_by_plan(plan, self.roster, seed, what)
        run = self._runtime.learn("fit", script, what, None if plan is None else plan.require_same)
        return validation.warn_of_few_rows(run if plan is None else with_plan(run, plan))

    def _fit_within(self, task: Task[A], limits: Limits, split: AnySplit | None, seed: int) -> Run[A]:
        """Plan and fit in one run."""
        paper_task = validation.paper_task(task, "planned")
        self._runtime.prepare(task, split)
        validation.check_job(task, self.roster, split=split)
        validation.warn_of_disclosure(None, CompactCentral(), between_machines=self._runtime.between_machines)
        left, seed = limits.less(self._runtime.preparation.bytes), validation.seed_number(seed)
        return fit_with(self._runtime, paper_task, split, left, seed)

    def predict(
        self, model: Model[Any], *, rows: npt.ArrayLike | None = None, to: str | None = None, bits: int | None = None
    ) -> Any:
        """Predict rows through the parties: each sends the part that its own columns make of every row.

        Parameters
        ----------
        model : LinearModel, ClassificationModel or KMeansModel
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
        ndarray, shape (m,), or ClassPredictions
            Predicted values, the index of each row's nearest centre, or chances of classes, in the order of `rows`.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + 3.0, [1, 1]))
        >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows())
        >>> federation.predict(run.model, rows=[4, 0]).round(6).tolist()
        [229.0, 5.0]
        """
        self._runtime.prepare_as(model)
        validation.check_model(model, self.roster)
        if to is not None:
            validation.check_party(to, self.roster)
        wanted = None if rows is None else validation.row_ids(rows, self.roster.n_rows)
        order = None if wanted is None else np.argsort(wanted, kind="stable")
        ascending = None if wanted is None else wanted[order]
        bits = checked_bits(bits)
        script = jobs.predict(model, ascending, to, bits, self.roster)
        predictions, _ = self._runtime.play(script, "predict", model=model, rows=ascending, to=to, bits=bits)
        return predictions if order is None else predictions[np.argsort(order, kind="stable")]

    def deliver(self, model: Model[Any], to: str, *, rows: npt.ArrayLike | None = None) -> None:
        """Let one party learn predictions, and nobody else: the others' parts reach it in sum, under masks.

        Neither the server nor the caller sees them, nor any party's part; `received` shows them where the party is in
        this process. Needs the extra ``colonnade[secure]``.

        Parameters
        ----------
        model : LinearModel, ClassificationModel or KMeansModel
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
        self._runtime.prepare_as(model)
        validation.check_model(model, self.roster)
        validation.check_party(to, self.roster)
        check_available()
        ascending = None if rows is None else np.sort(validation.row_ids(rows, self.roster.n_rows))
        script = jobs.deliver_in_secret(model, ascending, to, self.roster)
        self._runtime.play(script, "deliver", model=model, rows=ascending, to=to)
        if self._runtime.parties is not None:
            self._runtime.received(to)  # or say what is wrong with it

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
        validation.check_party(party, self.roster)
        return self._runtime.received(party)

    def evaluate(
        self,
        model: Model[R],
        *,
        rows: int | None = None,
        split: AnySplit | None = None,
        bits: int | None = None,
        by: str | None = None,
        seed: int = 0,
        changed: Changed = "refuse",
    ) -> R:
        """Count a model's cost on all rows through the parties, or estimate it from a sample.

        Parameters
        ----------
        model : LinearModel, ClassificationModel or KMeansModel
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
        changed : str
            "allow" evaluates also where a party's table changed since the model was learned, but not its number of
            rows; that is else an `AlignmentError`.

        Returns
        -------
        RegressionReport, ClassificationReport or ClusteringReport
            Costs, errors, sizes; and its `table`, whether that is the one the model was learned from.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.arange(12.0).reshape(6, 2) ** 2
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0] + 3.0, [1, 1]))
        >>> run = federation.fit(cn.Regression(), sampler=cn.AllRows())
        >>> round(federation.evaluate(run.model).r2, 6)
        1.0
        """
        self._runtime.prepare_as(model)
        validation.check_model(model, self.roster)
        validation.check_can_evaluate(model, self.roster)
        size = None if rows is None else sample_size(rows)
        validation.check_kind("split", split, AnySplit | None)
        seed, bits = validation.seed_number(seed), checked_bits(bits)
        if by is None:
            script = jobs.evaluate(model, size, split, bits, self.roster, seed)
        else:
            validation.check_evaluator(by, model, bits, self.roster)
            script = jobs.evaluate_in_secret(model, size, split, by, self.roster, seed)
        what = {"model": model, "rows": size, "split": split, "bits": bits, "by": by, "seed": seed}
        learned_from = getattr(model, "learned_from_", None)
        if changed == "refuse":
            validation.check_held_out(learned_from, split, self.roster)
        return self._runtime.play_on(learned_from, changed, script, "evaluate", **what)[0]

    def plan(
        self,
        task: AnyTask,
        *,
        budget_bytes: int | None = None,
        target_excess: float | None = None,
        max_rounds: int | None = None,
        pilot: int | None = None,
        split: AnySplit | None = None,
        seed: int = 0,
    ) -> Plan:
        """Find out what to do within a budget, or for a target: from a pilot, which is sent, counted and shown.

        Parameters
        ----------
        task : Regression or KMeans
            What to learn.
        budget_bytes : int, optional
            Pilot and run send no more than this: the plan with the least excess. Either this or `target_excess`.
        target_excess : float, optional
            The mean excess of cost over that of a model of all rows, 0.02 for 2 %: the plan with the fewest bytes.
        max_rounds : int, optional
            The run takes no more, after the pilot's.
        pilot : int, optional
            How many rows to draw for it; if left out, a few hundred, fewer where the budget is small.
        split : HoldOut or SplitBy, optional
            Which rows to hold out.
        seed : int
            Draws the pilot. Runs of the plan have seeds of their own.

        Returns
        -------
        Plan
            Print it; ``fit(task, plan=plan)`` does it.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.random.default_rng(0).normal(size=(20_000, 6))
        >>> y = X @ np.ones(6) + np.random.default_rng(1).normal(size=20_000)
        >>> federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
        >>> plan = federation.plan(cn.Regression(), target_excess=0.01)
        >>> plan.excess.mean <= 0.01, plan.rounds, plan.solver.step > 0.2
        (True, 4, True)
        """
        task = validation.paper_task(task, "planned")
        self._runtime.prepare(task, split)
        validation.check_job(task, self.roster, split=split)
        limits = Limits(budget_bytes, target_excess, max_rounds).less(self._runtime.preparation.bytes)
        return plan_with(self._runtime, task, split, limits, pilot, validation.seed_number(seed))

    def disclosure(
        self,
        task: AnyTask,
        *,
        sampler: AnySampler,
        solver: AnySolver | None = None,
        split: AnySplit | None = None,
    ) -> Disclosure:
        """Tell who would learn what about whom, before anything is asked of the parties.

        The run is rehearsed in this process by stand-ins with as many columns and a few rows of chance numbers.

        Parameters
        ----------
        task : Regression or KMeans
            What to learn.
        sampler : ImportanceSampling, UniformSampling or AllRows
            How to draw the coreset.
        solver : Solver, optional
            How to learn; if left out, the run stops at the coreset.
        split : HoldOut or SplitBy, optional
            Which rows to hold out.

        Returns
        -------
        Disclosure
            Without numbers. What a party's policy would refuse is in it. A `DisclosureWarning` is raised where features
            or labels of single rows would be shown.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9), np.arange(9.0), [3, 3, 3]))
        >>> sampler = cn.ImportanceSampling(size=2000, scores="secure", totals="set")
        >>> federation.disclosure(cn.Regression(), sampler=sampler).headline
        'Nobody would be shown features or labels of any row.'
        """
        validation.check_kind("sampler", sampler, AnySampler)
        ways: dict[str, object] = {"sampler": sampler, "solver": solver, "split": split}
        validation.check_job(task, self.roster, run_by=self.ledger.run_by, **ways)
        sheet = Disclosure.of(self._rehearsed(task, sampler, solver, split), planned=True)
        if sheet.raw:
            warnings.warn(sheet.headline, DisclosureWarning, stacklevel=2)
        return sheet

    def _rehearsed(
        self, task: AnyTask, sampler: AnySampler, solver: AnySolver | None, split: AnySplit | None
    ) -> Ledger:
        """Play a run in small with stand-ins, and give its ledger: kinds of messages do not depend on the numbers."""
        runtime = Runtime.here(stand_ins(self._runtime.unprepared, task), InProcess, nobody_listens)
        small, quick, met = in_small(sampler), solver and in_small(solver), len(runtime.ledger)
        runtime.prepare(task, split)
        script: Script[jobs.JobResult[Any]] = jobs.draw(task, small, split, runtime.roster, 0)
        if quick is not None:
            script = jobs.learn(task, small, quick, split, runtime.roster, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what chance numbers are like
            runtime.play(script, "fit" if quick else "coreset", task=task, sampler=small, solver=quick, split=split)
        return Ledger(runtime.ledger.since(met), run_by=self.ledger.run_by)

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
        task : Regression, Classification or KMeans
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
        ('party1', True, 16.0, ('schema', 'totals', 'row ids', 'scores', 'predictions'))
        """
        if sampler is not None and coreset is not None:
            raise InputError("diagnose measures one coreset. Pass a sampler or a coreset, not both.")
        task = validation.paper_task(task, "diagnosed")
        validation.check_ways(sampler)
        sampler = self._runtime.settled(sampler)
        self._runtime.prepare(task, None) if model is None else self._runtime.prepare_as(model)
        validation.check_job(task, self.roster, sampler=sampler, coreset=coreset, run_by=self.ledger.run_by)
        validation.check_kind("k-means model", model, KMeansModel | None)
        if model is not None:
            validation.check_model(model, self.roster)
        size = rows_to_look_at(self.roster, None if rows is None else sample_size(rows))
        pairs = whole_number("pairs", pairs, least=2, example="Pass for instance pairs=2000.")
        seed, source = validation.seed_number(seed), coreset if sampler is None else sampler
        script = diagnose_over_parties(task, self.roster, source, model, size, pairs, seed)
        options = {"pairs": pairs}
        what = {"task": task, "source": source, "model": model, "rows": size, "seed": seed, "options": options}
        found = with_cost(*self._runtime.play(script, "diagnose", **what))
        for concern in found.concerns:
            warnings.warn(concern, AssumptionWarning, stacklevel=2)
        return found

    def spot_check(self, run: Run[M], *, rows: int | None = 20, seed: int | None = None) -> Run[M]:
        """Let parties open some rows of what they had committed to, and compare them with what they drew and told.

        Parameters
        ----------
        run : Run
            Of these parties, with ``draws="committed"``.
        rows : int or None
            How many of each party's draws to open, and of the rows drawn evenly, at every party; all if None. An opened
            row shows its score, that of a neighbour, and sums of scores around it.
        seed : int, optional
            Chooses them. If left out, nobody can tell beforehand, which is the point; give one only in tests.

        Returns
        -------
        Run
            The same, with what was opened and sent: save it, and anybody can repeat ``run.spot_check()``. What does not
            fit is a `RemoteProtocolError` that names the party.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9), np.arange(9.0), [3, 3, 3]))
        >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=30, draws="committed"))
        >>> checked = federation.spot_check(run, rows=None)
        >>> sum(checked.spot_check().opened.values())
        30
        """
        count = None if rows is None else whole_number("rows", rows, least=1, example="Pass for instance rows=20.")
        self._runtime.prepare(getattr(run, "task", None), getattr(run, "split", None))
        rule, evidence = validation.committed(run, self.roster)
        rng = np.random.default_rng(None if seed is None else validation.seed_number(seed))
        chosen = rows_to_open(run.coreset, evidence, count, rng)
        script = jobs.open_commitments(run.task, rule, run.split, self.roster, evidence, chosen)
        what = {"task": run.task, "sampler": run.sampler, "split": run.split, "rows": chosen}
        evidence, sent = self._runtime.play(script, "audit", **what)  # its name to parties' owners
        ledger = Ledger([*run.ledger, *sent], run_by=run.ledger.run_by)
        checked = replace(run, coreset=replace(run.coreset, evidence=evidence), ledger=ledger)
        checked.spot_check()
        return checked

    def certify(self, run: Run[Any], *, rows: int = 600, seed: int = 1, changed: Changed = "refuse") -> Certificate:
        """Say what a run's model costs on all rows, and how far from the best it can be, from rows it has not seen.

        Parameters
        ----------
        run : Run
            With a model, of these parties.
        rows : int
            How many rows to draw for it, by the scores. Of each the parties send 16 bits, for k-means 16 a centre.
        seed : int
            Draws them, apart from whatever the run drew.
        changed : str
            "allow" certifies also where a party's table changed since the run; that is else an `AlignmentError`.

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
        (True, True, ('schema', 'totals', 'row ids', 'scores', 'features', 'moments', 'labels'))
        """
        self._runtime.prepare_as(getattr(run, "model", None))
        subject = validation.audit_subject(run, self.roster)
        size, seed = sample_size(rows), validation.seed_number(seed)
        certifying.check_rows(subject.task, self.roster, size)
        apart, n_parties = self._runtime.between_machines, len(self.roster.cards)
        secure = certifying.in_secret(run.coreset.sampler, n_parties, between_machines=apart)
        script = certifying.certify(subject, self.roster, size, seed, secure=secure)
        what = {"task": run.task, "model": run.model, "split": run.split, "rows": size, "seed": seed}
        hidden = 0 if run.precision is None else len(run.precision.hidden)
        what |= {"precision": run.precision, "options": {"secure": secure, "directions": 1 + hidden}}
        found, sent = self._runtime.play_on(run.tables, changed, script, "certify", **what)
        return certifying.with_cost(found, sent, run.ledger.bytes)

    def __repr__(self) -> str:
        roster = self.roster
        return f"Federation({', '.join(roster.names)}; {roster.n_rows} rows, {len(roster.feature_names)} features)"
