"""What a federation can tell of a job: before it, what it would take and show; after it, whether to trust it."""

import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any, TypeVar

from colonnade import door
from colonnade.contracts import Roster
from colonnade.coreset import Coreset
from colonnade.diagnostics import certifying
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.over_parties import diagnose, with_cost
from colonnade.diagnostics.records import Diagnosis
from colonnade.disclosure import Disclosure
from colonnade.errors import AssumptionWarning, DisclosureWarning, InputError
from colonnade.ledger import Ledger
from colonnade.options import whole_number
from colonnade.planning.pilot import play_pilot
from colonnade.planning.planner import Limits, make_plan, pilot_size
from colonnade.planning.records import Plan
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run
from colonnade.sampling import AnySampler
from colonnade.sampling.size import sample_size
from colonnade.solvers import AnySolver
from colonnade.stage import Stage
from colonnade.tasks import AnyTask, KMeansModel

M = TypeVar("M")


class Assessment:
    """The questions about jobs, as methods of a `Federation`; what learns and predicts is in `api`."""

    _stage: Stage

    @property
    def roster(self) -> Roster:
        """The parties and their columns."""
        return self._stage.roster

    @property
    def ledger(self) -> Ledger:
        """Every message sent so far."""
        return self._stage.ledger

    @property
    def sent(self) -> Ledger:
        """What the last call sent: its part of the ledger."""
        return self._stage.sent

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
        (True, 2, True)
        """
        door.check_job(task, self.roster, split=split)
        limits, seed = Limits(budget_bytes, target_excess, max_rounds), door.seed_number(seed)
        size = pilot_size(task, self.roster, limits, pilot)
        script, started = play_pilot(task, self.roster, split, size, seed), perf_counter()
        rows, sent = self._stage.play(script, "plan", task=task, split=split, pilot=size, seed=seed)
        seconds = perf_counter() - started
        return make_plan(task, self.roster, split, limits, seed, rows, list(sent), seconds)

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
        door.check_job(task, self.roster, sampler=sampler, solver=solver, split=split)
        ledger = door.rehearsed(task, sampler, solver, split, self.roster)
        sheet = Disclosure.of(Ledger(ledger, run_by=self.ledger.run_by), planned=True)
        if sheet.raw:
            warnings.warn(sheet.headline, DisclosureWarning, stacklevel=2)
        return sheet

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
        sampler = None if sampler is None else self._stage.settled(sampler)
        door.check_job(task, self.roster, sampler=sampler, coreset=coreset, run_by=self.ledger.run_by)
        door.check_kind("k-means model", model, KMeansModel | None)
        if model is not None:
            door.check_model(model, self.roster)
        size = None if rows is None else sample_size(rows)
        pairs = whole_number("pairs", pairs, least=2, example="Pass for instance pairs=2000.")
        seed, source = door.seed_number(seed), coreset if sampler is None else sampler
        script = diagnose(task, self.roster, source, model, size, pairs, seed)
        what = {"task": task, "source": source, "model": model, "rows": size, "pairs": pairs, "seed": seed}
        found = with_cost(*self._stage.play(script, "diagnose", **what))
        for concern in found.concerns:
            warnings.warn(concern, AssumptionWarning, stacklevel=2)
        return found

    def audit(self, run: Run[M], *, rows: int | None = 20, seed: int | None = None) -> Run[M]:
        """Let parties open some rows of what they had committed to, and compare them with what they drew and told.

        Parameters
        ----------
        run : Run
            Of these parties, with ``draws="committed"``.
        rows : int or None
            How many of each party's draws to open, at every party; all if None. An opened row shows its score, that of
            a neighbour, and sums of scores around it.
        seed : int, optional
            Chooses them. If left out, nobody can tell beforehand, which is the point; give one only in tests.

        Returns
        -------
        Run
            The same, with what was opened and sent: save it, and anybody can repeat ``run.audit()``. What does not fit
            is a `RemoteProtocolError` that names the party.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9), np.arange(9.0), [3, 3, 3]))
        >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=30, draws="committed"))
        >>> audited = federation.audit(run, rows=None)
        >>> sum(audited.audit().opened.values())
        30
        """
        count = None if rows is None else whole_number("rows", rows, least=1, example="Pass for instance rows=20.")
        script, what = door.audit_of(run, self.roster, count, seed)
        evidence, sent = self._stage.play(script, "audit", **what)
        ledger = Ledger([*run.ledger, *sent], run_by=run.ledger.run_by)
        audited = replace(run, coreset=replace(run.coreset, evidence=evidence), ledger=ledger)
        audited.audit()
        return audited

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
        (True, True, ('totals', 'row ids', 'scores', 'predictions', 'moments', 'labels'))
        """
        certified = door.certified(run, self.roster)
        size = sample_size(rows)
        certifying.check_rows(certified.model, self.roster, size)
        seed = door.seed_number(seed)
        apart = self._stage.between_machines
        script = certifying.certify(certified, self.roster, size, seed, between_machines=apart)
        what = {"task": run.task, "model": run.model, "split": run.split, "rows": size, "seed": seed}
        what |= {"drawn_by": run.coreset.sampler, "precision": run.precision}
        found, sent = self._stage.play(script, "certify", **what)
        return certifying.with_cost(found, sent, run.ledger.bytes)
