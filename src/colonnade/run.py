"""A run: what was asked, what came of it, what was sent. Saved as JSON and Arrow, never pickle."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from colonnade import storage
from colonnade.cells import html_table
from colonnade.contracts import PartyCard, Roster, ScoreRule
from colonnade.coreset import (
    Coreset,
    Evidence,
    Precision,
    StandardErrors,
    UnlistedRows,
    coreset_of_all,
    unlisted,
    without_list,
)
from colonnade.diagnostics.certificate import Certificate
from colonnade.disclosure import Disclosure
from colonnade.errors import RemoteProtocolError, UnsupportedError
from colonnade.findings import NOTHING_FOUND, Findings
from colonnade.job_sheets import words_of
from colonnade.ledger import SERVER, Ledger
from colonnade.node.identity_files import read_pins
from colonnade.privacy.identities import is_signed
from colonnade.protocol.fingerprints import Tables
from colonnade.protocol.sheet import read_sheet, sheet_party
from colonnade.protocol.splits import AnySplit, SplitBy, counted
from colonnade.run_rows import are_implied, check_unlisted, implied_rows
from colonnade.run_words import run_in_words
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling
from colonnade.sampling.committed.spot_check import SpotCheck, spot_check
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.weights import Design
from colonnade.solvers import AnySolver
from colonnade.storage import AnyPath, Folder, Layout
from colonnade.tasks import AnyTask
from colonnade.tasks.model_files import LINES, MODEL
from colonnade.tasks.registry import read_model
from colonnade.tasks.summary import Covariance, Of, Summary, summarise
from colonnade.text_tables import paragraphs

M = TypeVar("M")
T = TypeVar("T")
CORESET, LEDGER, EVIDENCE, FINDINGS = "coreset.arrow", "ledger.json", "evidence.json", "findings.json"
# Rows and weights, 16 bytes together, that a file has at most to be read again: of more, no list is saved.
MOST_LISTED = (storage.MAX_ARROW_BYTES - (1 << 16)) // 16
# Fields of a run that may be found when they are first read.
LAZY = ("precision", "errors")
RUN = Layout(
    "run",
    "Run.save or `fit --out`",
    "run.json",
    frozenset({CORESET, LEDGER, EVIDENCE, FINDINGS, MODEL.record, LINES}),
    oldest=2,  # which lists all rows, too, where all were taken
    newest=3,
)


class _Found(Generic[T]):
    """A field that is given as it is, or as how to find it: then it is found when it is first read."""

    def __set_name__(self, _: type[object], name: str) -> None:
        self._name = name

    def __get__(self, run: object, _: type[object] | None = None) -> T | None:
        if run is None:  # the field's default
            return None
        given = vars(run)[self._name]
        if callable(given):
            vars(run)[self._name] = given = given()
        found: T | None = given
        return found

    def __set__(self, run: object, given: T | Callable[[], T | None] | None) -> None:
        vars(run)[self._name] = given


@dataclass(frozen=True, eq=False)
class Run(Generic[M]):
    """The result of `Federation.fit` or `Federation.coreset`.

    Parameters
    ----------
    task : Regression or KMeans
        What was asked.
    sampler : ImportanceSampling, UniformSampling, AllRows, or None
        How rows were drawn; None where a coreset was given.
    solver : Solver or None
        How the model was learned; None where none was asked for.
    split : HoldOut, SplitBy or None
        Which rows were held out.
    seed : int
        With the data and the options, it decides the result bit for bit.
    roster : Roster
        The parties and their columns.
    coreset : Coreset
        Rows and weights.
    model : LinearModel, KMeansModel or None
        What was learned.
    facts : dict of str to float
        What the solver tells of itself, such as the objective on the coreset, or epochs.
    ledger : Ledger
        Every message of this run.
    seconds : float
        How long it took.
    versions : dict of str to str
        Of Python, NumPy and Colonnade.
    precision : Precision or None
        What the coreset's rows say of the model, where the server saw them: `Federation.certify` uses it. It is
        found when it is first read, or saved, and so are `errors`; until then the run keeps the rows, or their codes.
    tables : Tables or None
        The fingerprints of the parties' tables, which change with their data and tell nothing else; None in runs of
        earlier versions.
    why : str or None
        Of a planned run: why it was done in this way, in one sentence.
    errors : StandardErrors or None
        What the rows say of each coefficient, where the server saw what that takes: `summary` shows it.
    findings : Findings
        What was found out of the model since: `with_findings` puts it there.

    Examples
    --------
    >>> import numpy as np, colonnade as cn, tempfile
    >>> federation = cn.Federation(cn.split_columns(np.eye(9, 4), np.arange(9.0), [2, 2]))
    >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20), seed=7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = cn.Run.load(run.save(folder + "/run"))
    >>> bool((again.model.coef_ == run.model.coef_).all()), again.ledger == run.ledger
    (True, True)
    >>> print(run)  # doctest: +ELLIPSIS
    LinearModel of Regression(l2=0.1).
    From 2 parties: party1, party2; 4 columns; the label is party2's.
    ...
    """

    task: AnyTask
    sampler: AnySampler | None
    solver: AnySolver | None
    split: AnySplit | None
    seed: int
    roster: Roster
    coreset: Coreset
    model: M
    facts: dict[str, float]
    ledger: Ledger
    seconds: float
    versions: dict[str, str]
    precision: _Found[Precision] = _Found()
    tables: Tables | None = field(default=None, repr=False)
    why: str | None = None
    errors: _Found[StandardErrors] = _Found()
    findings: Findings = NOTHING_FOUND

    def __repr__(self) -> str:
        # Rows, weights and what was sent have their own places: `coreset`, `ledger`, `disclosure`.
        learned = "coreset" if self.model is None else type(self.model).__name__
        ways = f"{self.sampler or self.coreset.sampler}, {self.solver or 'no solver'}"
        return f"Run({self.task}, {ways}: {learned} of {len(self.coreset):,} rows, {self.ledger.bytes:,} bytes sent)"

    def __str__(self) -> str:
        """Say in about ten lines what was learned from whom, how good it is, what was sent and shown, what to do."""
        return paragraphs("\n".join(run_in_words(self)))

    def _repr_html_(self) -> str:
        return html_table("Run", (), [(line,) for line in run_in_words(self)], ())

    @property
    def diagnostics(self) -> dict[str, float]:
        """How steady the coreset's weights are (their sum estimates the weight of all rows), and the solver's facts.

        Facts are the `cost` on the coreset, `epochs` of `Saga` and `cells` of `DistDim`, and what a plan had foreseen.
        """
        return {
            "size": len(self.coreset),
            "distinct_rows": self.coreset.n_distinct,
            "effective_size": self.coreset.effective_size,
            "weight_sum": self.coreset.weight_sum,
            "total_weight": self.coreset.total_weight,
            "largest_weight": self.coreset.largest_weight,
            **self.facts,
        }

    @property
    def rule(self) -> ScoreRule:
        """What parties scored their rows by."""
        rule = self.task.score_rule()
        return rule if self.sampler is None else self.sampler.scored_by(rule, self.roster)

    @property
    def disclosure(self) -> Disclosure:
        """Who learned what about whom in this run: print it, or take its `lines`."""
        return Disclosure.of(self.ledger)

    def summary(
        self, of: Of = "population", covariance: Covariance = "sandwich", *, confidence: float = 0.95
    ) -> Summary:
        """Give each coefficient its standard error, t, p-value and interval.

        Parameters
        ----------
        of : {"population", "table"}
            What the model is to tell of: the population that the table's rows are drawn from, or the table itself,
            whose coefficients a coreset only estimates. With `AllRows` the latter are exact, and have no errors.
        covariance : {"sandwich", "classical"}
            Whether residuals may vary differently from row to row (HC2), or vary alike everywhere (for classes: as
            their chances say), which is asked of all rows only: what a draw adds is known from its chances.
        confidence : float
            Of the intervals.

        Returns
        -------
        Summary
            Print it, show it in a notebook, or take it `to_pandas`.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(1000, 2))
        >>> y = X @ [1.0, 0.5] + 3 * rng.normal(size=1000)
        >>> run = cn.Federation(cn.split_columns(X, y, [1, 1])).fit(cn.Regression(), sampler=cn.AllRows())
        >>> print(run.summary())
        Coefficients for the population that rows are drawn from; sandwich (HC2) standard errors, 95 % intervals
        <BLANKLINE>
        party  feature     coefficient    std.     t       p      low     high VIF
                                         error
               (intercept)   -0.142203  0.0933 -1.52  0.1278 -0.32529 0.040886
        party1 party1_0       0.892641 0.09012  9.91 <0.0001  0.71579   1.0695   1
        party2 party2_0       0.446312 0.09915  4.50 <0.0001  0.25174  0.64088   1
        <BLANKLINE>
        Condition number of all columns: 1.02.
        Learned on all rows, 1,000 in weight.
        """
        errors = (self.coreset, self.errors)
        return summarise(self.task, self.model, self.solver, *errors, of, covariance, confidence)

    def spot_check(self, pins: AnyPath | None = None) -> SpotCheck:
        """Compare what parties drew and told with what they had committed to, from this run alone.

        Needs ``draws="committed"``; rows that `Federation.spot_check` opened are compared too. The first that does not
        fit is a `RemoteProtocolError` that names the party.

        Parameters
        ----------
        pins : str or path-like, optional
            The pins.toml of parties on their own machines. Their signatures are then compared too: a server that
            changed the run is named, and not a party that it would blame.

        Returns
        -------
        SpotCheck
            What was checked: print it.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> federation = cn.Federation(cn.split_columns(np.eye(9), np.arange(9.0), [3, 3, 3]))
        >>> run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=30, draws="committed"))
        >>> run.spot_check().findings[2]
        'Weights follow from the scores that were told.'
        """
        evidence, sampler = self.coreset.evidence, self.sampler
        rule = self.rule
        if evidence is None or not isinstance(sampler, ImportanceSampling) or not isinstance(rule, IntegerScores):
            raise UnsupportedError(
                "This run's draws were not committed: there is nothing to compare them with. "
                'Draw with ImportanceSampling(size, draws="committed").'
            )
        # What rows count follows from the split, unless a column of a party says it, which the run does not keep.
        known = self.roster.weight_party is None and not isinstance(self.split, SplitBy)
        row_weights = counted(self.roster.n_rows, "train", self.split, None, None) if known else None
        design = Design(self.roster, row_weights, sampler.size, sampler.uniform_share)
        signed = None if pins is None else partial(is_signed, read_pins(pins))
        if signed is not None:
            _check_sheet(self, evidence)
        return spot_check(self.coreset, evidence, rule, design, weights_known=known, is_signed=signed)

    def with_findings(
        self, evaluation: Any = None, *, all_rows: Any = None, certificate: Certificate | None = None
    ) -> "Run[M]":
        """Copy the run with what was found out of its model, to be saved and shown with it.

        Parameters
        ----------
        evaluation : RegressionReport, ClassificationReport or ClusteringReport, optional
            What `Federation.evaluate` says of the model, on the rows that the run held out, or on all where it held
            out none.
        all_rows : RegressionReport, ClassificationReport or ClusteringReport, optional
            What it says there of a model learned from all rows.
        certificate : Certificate, optional
            What `Federation.certify` says of the run.

        Returns
        -------
        Run
            What was found before stays where nothing is given in its place.

        Examples
        --------
        >>> import numpy as np, colonnade as cn
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0, 3.0], [1, 2]))
        >>> split = cn.HoldOut(0.2)
        >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100), split=split)
        >>> run = run.with_findings(federation.evaluate(run.model, split=split))
        >>> run.findings.evaluation.n_evaluated
        100
        """
        if self.model is None:
            raise UnsupportedError("This run is a coreset without a model: there is nothing to judge. Use `fit`.")
        found = Findings(evaluation, all_rows, certificate)
        found.check(type(self.model).report)  # type: ignore[attr-defined]  # every model has one
        # What is found when it is first read is handed on as it is.
        return replace(self, findings=self.findings.joined(found), **{name: vars(self)[name] for name in LAZY})

    def report(self, path: AnyPath, *beside: "Run[Any]", plan: Any = None) -> Path:
        """Write a page that shows the run to people who do not read terminals: one HTML file, which loads nothing.

        Needs the extra `report`.

        Parameters
        ----------
        path : str or path-like
            The file; a report that is there is replaced, any other file is refused.
        *beside : Run
            Other runs, to compare excess and bytes with.
        plan : Plan, optional
            What was planned: what other budgets would buy.

        Returns
        -------
        Path
            The file.

        Examples
        --------
        >>> import numpy as np, colonnade as cn, tempfile
        >>> federation = cn.Federation(cn.split_columns(np.eye(9, 4), np.arange(9.0), [2, 2]))
        >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20), seed=7)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run.report(folder + "/page.html").name
        'page.html'
        """
        from colonnade.report import write_report

        return write_report([self, *beside], path, plan)

    def save(self, path: AnyPath) -> Folder:
        """Write the run to a folder, whole or not at all.

        It has `run.json` and `ledger.json`; with a model also `model.json` and `model.arrow`, with committed draws
        `evidence.json`, with findings `findings.json`. Rows and weights are in `coreset.arrow`, unless they follow from
        `run.json` (`AllRows`, where no column says which rows count) or are more than 67 million: then a run that is
        loaded has everything but these.

        Parameters
        ----------
        path : str or path-like
            A new folder, or one that holds a run, which is replaced.

        Returns
        -------
        Path
            The folder.
        """
        return storage.write_folder(path, RUN, _files(self))

    @classmethod
    def load(cls, path: AnyPath) -> "Run[Any]":
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The folder.

        Returns
        -------
        Run
            Equal to the one saved.
        """
        with storage.reading(path, RUN) as folder:
            return _read(folder)


def _check_sheet(run: Run[Any], evidence: Evidence) -> None:
    """Require that the job sheet that parties signed for says what the run says: another split would be other rows."""
    if not evidence.sheet:
        raise UnsupportedError(
            "This run has no job sheet, for which parties sign: it is of an earlier version, or the server took it "
            "out. Signatures cannot be compared; without pins, the rest can."
        )
    try:
        sheet = read_sheet(evidence.sheet)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RemoteProtocolError(f"The run's job sheet cannot be read: {error}.", party=SERVER) from error
    told = (sheet.task, sheet.sampler, sheet.split, sheet.parties, sheet.rows)
    parties = tuple(map(sheet_party, run.roster.cards))
    said = (*map(words_of, (run.task, run.sampler, run.split)), parties, run.roster.n_rows)
    if msgspec.msgpack.encode(told) != msgspec.msgpack.encode(said):
        raise RemoteProtocolError(
            "The run says another task, sampler, split or other parties than the job sheet that its parties signed "
            "for. Do not use the coreset.",
            party=SERVER,
        )


class _Record(msgspec.Struct):
    format: int
    task: AnyTask
    sampler: AnySampler | None
    solver: AnySolver | None
    split: AnySplit | None
    seed: int
    parties: tuple[PartyCard, ...]
    n_rows: int
    total_weight: float
    drawn_by: str
    rule: str | None
    total: float | None
    has_model: bool
    facts: dict[str, float]
    seconds: float
    versions: dict[str, str]
    run_by: str | None = None
    precision: Precision | None = None
    tables: Tables | None = None
    distinct: bool = False
    why: str | None = None
    errors: StandardErrors | None = None
    stratified: bool = False
    # Of rows that are too many for a file.
    unlisted: UnlistedRows | None = None


def _record(run: Run[Any]) -> _Record:
    coreset = run.coreset
    return _Record(
        RUN.newest,
        run.task,
        run.sampler,
        run.solver,
        run.split,
        run.seed,
        run.roster.cards,
        coreset.n_rows,
        coreset.total_weight,
        coreset.sampler,
        coreset.rule,
        coreset.total,
        run.model is not None,
        run.facts,
        run.seconds,
        run.versions,
        run.ledger.run_by,
        run.precision,
        run.tables,
        coreset.distinct,
        run.why,
        run.errors,
        coreset.stratified,
        None if are_implied(run.sampler, run.split, run.roster) else unlisted(coreset, MOST_LISTED),
    )


def _files(run: Run[Any]) -> dict[str, bytes]:
    record = _record(run)
    is_listed = record.unlisted is None and not are_implied(run.sampler, run.split, run.roster)
    return {
        RUN.record: storage.json_bytes(record),
        LEDGER: run.ledger.to_json().encode(),
        **({CORESET: _listed(run.coreset)} if is_listed else {}),
        **({} if run.coreset.evidence is None else {EVIDENCE: msgspec.json.encode(run.coreset.evidence)}),
        **({} if run.findings == NOTHING_FOUND else {FINDINGS: storage.json_bytes(run.findings)}),
        **({} if run.model is None else run.model.files()),
    }


def _listed(coreset: Coreset) -> bytes:
    return storage.arrow_bytes({"row": coreset.rows, "weight": coreset.weights})


def _read_coreset(folder: Folder, record: _Record) -> Coreset:
    alignment = None if record.tables is None else record.tables.alignment
    if record.sampler == AllRows() and record.unlisted is None and not os.path.lexists(folder / CORESET):
        check_unlisted(record.n_rows, record.total_weight)
        return coreset_of_all(implied_rows(record.n_rows, record.split, Roster(record.parties)), alignment)
    known: dict[str, Any] = {
        "n_rows": record.n_rows,
        "total_weight": record.total_weight,
        "sampler": record.drawn_by,
        "rule": record.rule,
        "total": record.total,
        "evidence": storage.read_json(folder / EVIDENCE, Evidence) if os.path.lexists(folder / EVIDENCE) else None,
        "alignment": alignment,
        "distinct": record.distinct,
        "stratified": record.stratified,
    }
    if record.unlisted is not None:
        check_unlisted(record.n_rows, record.total_weight)
        return without_list(record.unlisted, **known)
    drawn = storage.read_arrow(folder / CORESET, {"row": "int64", "weight": "double"})
    return Coreset(drawn["row"], drawn["weight"], **known)


def _read(folder: Folder) -> Run[Any]:
    record: _Record = storage.read_record(folder, RUN, _Record)
    if not record.parties:
        raise ValueError("it names no parties")
    if record.errors is not None and not record.errors.is_for(len(Roster(record.parties).feature_names)):
        raise ValueError("its standard errors are not one a coefficient")
    coreset = _read_coreset(folder, record)
    model = read_model(folder) if record.has_model else None
    return Run(
        record.task,
        record.sampler,
        record.solver,
        record.split,
        record.seed,
        Roster(record.parties, coreset.alignment),
        coreset,
        model,
        record.facts,
        Ledger.from_json(_text(folder / LEDGER), run_by=record.run_by),
        record.seconds,
        record.versions,
        record.precision,
        record.tables,
        record.why,
        record.errors,
        _read_findings(folder, model),
    )


def _read_findings(folder: Folder, model: Any) -> Findings:
    if model is None or not os.path.lexists(folder / FINDINGS):
        return NOTHING_FOUND
    return Findings.restored(storage.read_json(folder / FINDINGS, dict[str, Any]), type(model).report)


def _text(file: Path) -> str:
    return storage.read_file(file, storage.MAX_JSON_BYTES).decode()


def current_versions() -> dict[str, str]:
    """Name the versions that decide a run's bits."""
    return {**storage.written_by(), "numpy": np.__version__, "python": platform.python_version()}


def check_destination(path: AnyPath) -> Folder:
    """Require a folder that a run can be saved to: a new or empty one, or one with a run, where we may write."""
    return storage.check_destination(path, RUN)
