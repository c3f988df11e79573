"""A plan: what to do, what that is expected to send and to lose, and the pilot it was told from. JSON, never pickle."""

import hashlib
import math
from pathlib import Path
from typing import Annotated, Any

import msgspec

from colonnade.cells import html_table
from colonnade.contracts import PartyCard
from colonnade.errors import InputError
from colonnade.ledger import Entry, aligned
from colonnade.protocol.fingerprints import Tables
from colonnade.protocol.splits import AnySplit
from colonnade.sampling import AnySampler
from colonnade.solvers import AnySolver
from colonnade.storage import MAX_JSON_BYTES, AnyPath, read_file
from colonnade.tasks import PaperTask

FORMAT = 3
# Of a table of what budgets would buy, and which of its columns are numbers.
FRONTIER = ("bytes", "excess", "between", "and", "rows", "sampler", "step", "")
FRONTIER_NUMBERS = frozenset({0, 1, 2, 3, 4, 6})
Amount = Annotated[float, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Excess(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The excess of cost over that of a model of all rows, relative: its mean over runs, and a 95 % interval.

    The interval is for that mean, or for the excess of one run.
    """

    mean: Amount
    low: Amount
    high: Amount

    def __str__(self) -> str:
        return f"{percent(self.mean)}, between {percent(self.low)} and {percent(self.high)}"


class Choice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing to do, and what is expected of it.

    Parameters
    ----------
    sampler : ImportanceSampling, UniformSampling or AllRows
        How to draw rows.
    solver : Central or CompactCentral
        How to learn.
    pilot_share : float
        Which share of the coreset's weight the pilot's rows have, which join it.
    bytes : int
        To be sent, without the pilot.
    most_bytes : int
        With what is set aside for longer codes; a run that would send more rounds more coarsely, or leaves out rows.
    row_bytes : mapping of str to float
        Of a row's codes, by party, where rows are rounded.
    rounds : int
        Without the pilot's.
    excess, one_run : Excess
        Expected: with an interval for the mean over runs, and with one for the excess of a single run.
    """

    sampler: AnySampler
    solver: AnySolver
    pilot_share: Amount
    bytes: Count
    most_bytes: Count
    row_bytes: dict[str, Amount]
    rounds: Count
    excess: Excess
    one_run: Excess


class PilotSample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pilot's rows, as they came: they join the coreset of a run of the plan.

    Parameters
    ----------
    rows : tuple of int
        Their ids, ascending.
    weights : tuple of float
        What each stands for.
    totals : tuple of float
        The sums of all rows' scores at the parties, as these told them.
    replies : dict of str to bytes
        What each party sent of them, columns of few values as they are and others rounded.
    finer : dict of str to bytes
        What each sent again, rounded by a finer step, if it did.
    """

    rows: tuple[int, ...]
    weights: tuple[float, ...]
    totals: tuple[float, ...]
    replies: dict[str, bytes]
    finer: dict[str, bytes]


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do for a budget or a target; `Federation.plan` makes it, ``fit(task, plan=plan)`` does it.

    Parameters
    ----------
    task : Regression, Classification or KMeans
        What is to be learned.
    split : HoldOut, SplitBy or None
        Which rows are held out.
    parties : tuple of PartyCard
        Whose rows.
    budget_bytes, target_excess, max_rounds : optional
        The limits it was made for.
    seed : int
        Of the pilot.
    chosen : Choice
        What is done.
    by_phase, by_party : dict of str to int
        Its bytes, the pilot's included.
    pilot : tuple of Entry
        What the pilot sent: it stands on the ledger of every run of the plan.
    sample : PilotSample
        Its rows. A file of the plan has them too: keep it as you keep what parties send.
    tables : Tables
        Of which rows it is, by the fingerprints of the parties' tables: a run of the plan is on the same ones.
    seconds : float
        How long the run may take: as long as the pilot did, round for round, on the machines it was played on.
    frontier : tuple of Choice
        What other budgets would buy, ascending; the chosen one is among them.
    r2 : float or None
        Of regression: R2 expected on new rows.
    r2_of_all_rows : float or None
        The same of a model of all rows.
    unclear : str or None
        Why the excess is not known, and what to do about it.
    why : str
        Why this was chosen: what it was compared with, and what limits, rows and parties' policies left out.
    fingerprint : str
        Of all the rest; a file that was changed has another.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(20_000, 6))
    >>> y = X @ np.ones(6) + np.random.default_rng(1).normal(size=20_000)
    >>> federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
    >>> plan = federation.plan(cn.Regression(), budget_bytes=20_000)
    >>> run = federation.fit(cn.Regression(), plan=plan, seed=1)
    >>> run.ledger.bytes <= 20_000, abs(run.ledger.bytes / plan.bytes - 1) < 0.03
    (True, True)
    """

    task: PaperTask
    split: AnySplit | None
    parties: tuple[PartyCard, ...]
    budget_bytes: int | None
    target_excess: float | None
    max_rounds: int | None
    seed: int
    chosen: Choice
    by_phase: dict[str, int]
    by_party: dict[str, int]
    pilot: tuple[Entry, ...]
    sample: PilotSample
    tables: Tables
    seconds: Amount
    frontier: tuple[Choice, ...]
    r2: float | None = None
    r2_of_all_rows: float | None = None
    unclear: str | None = None
    why: str = ""
    format: int = FORMAT
    fingerprint: str = ""

    @property
    def sampler(self) -> AnySampler:
        """How rows are drawn."""
        return self.chosen.sampler

    @property
    def solver(self) -> AnySolver:
        """How the model is learned."""
        return self.chosen.solver

    @property
    def excess(self) -> Excess | None:
        """What models are expected to cost above that of all rows, on average over runs; None where it is `unclear`."""
        return None if self.unclear else self.chosen.excess

    @property
    def one_run(self) -> Excess | None:
        """The same, with an interval for the one run that you will get."""
        return None if self.unclear else self.chosen.one_run

    @property
    def rounds(self) -> int:
        """How many rounds the run takes, after the pilot's."""
        return self.chosen.rounds

    @property
    def pilot_bytes(self) -> int:
        """What the pilot sent."""
        return sum(entry.bytes for entry in self.pilot)

    @property
    def pilot_rows(self) -> int:
        """How many rows the pilot had."""
        return len(self.sample.rows)

    @property
    def bytes(self) -> int:
        """What pilot and run are expected to send together."""
        return self.pilot_bytes + self.chosen.bytes

    def require_same(self, now: Tables) -> None:
        """Require the tables that the plan was made for: what the pilot told of them is told no second time.

        Parameters
        ----------
        now : Tables
            Those that a run is to be done on.
        """
        if self.tables.compared(now) != "same":
            names = [party for party, each in self.tables.fingerprints.items() if each != now.fingerprints.get(party)]
            whose = " and ".join(map(repr, names)) or "A party"
            raise InputError(f"{whose} has other rows than when the plan was made. Make the plan again.")

    def save(self, path: AnyPath) -> Path:
        """Write the plan to a JSON file.

        Parameters
        ----------
        path : str or path-like
            The file; one that exists is replaced.

        Returns
        -------
        Path
            The file.
        """
        file = Path(path)
        try:
            file.touch(mode=0o600)
            file.chmod(0o600)  # also where it was there before: it has rows in it
            file.write_bytes(msgspec.json.format(msgspec.json.encode(self)) + b"\n")
        except (OSError, ValueError) as error:
            raise InputError(f"The plan cannot be saved to {path}: {error}. Choose a file you may write to.") from error
        return file

    @classmethod
    def load(cls, path: AnyPath) -> "Plan":
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        Plan
            Equal to the one saved.
        """
        try:
            plan = msgspec.json.decode(read_file(Path(path).resolve(), MAX_JSON_BYTES), type=Plan)
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not a readable plan: {error}. Pass a plan that was saved.") from error
        if plan.format != FORMAT or plan.fingerprint != fingerprint(plan):
            raise InputError(f"{path} was changed after it was written, or is of another version. Make the plan again.")
        return plan

    def __str__(self) -> str:
        chosen = self.chosen
        lines = [
            f"{chosen.sampler}, {chosen.solver}",
            self.why,
            *self._expected(),
            f"Bytes: {self.bytes:,}, {self.pilot_bytes:,} of them sent already by a pilot of {self.pilot_rows:,} rows; "
            f"at most {self.pilot_bytes + chosen.most_bytes:,}.",
            f"By phase: {_listed(self.by_phase)}. By party: {_listed(self.by_party)}.",
            f"{chosen.rounds} rounds; about {self.seconds:.2g} s, as the pilot took, without the server's own work.",
            "",
            "What other budgets would buy:",
            frontier_table(self),
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        title = f"Plan: {self.chosen.sampler}, {self.chosen.solver}"
        notes = [self.why, *self._expected(), f"{self.bytes:,} bytes, {self.pilot_bytes:,} of them sent by the pilot."]
        return html_table(title, FRONTIER, _frontier_lines(self), FRONTIER_NUMBERS, notes)

    def _expected(self) -> list[str]:
        if self.unclear:
            return [f"Expected excess: not known. {self.unclear}"]
        chosen, run, r2 = self.chosen, self.chosen.one_run, []
        if self.r2 is not None and self.r2_of_all_rows is not None:
            r2 = [f"R2 on new rows: {_r2(self.r2)}, where a model of all rows has {_r2(self.r2_of_all_rows)}."]
        return [
            f"Expected excess: {chosen.excess} on average over runs,",
            f"  and in one run between {percent(run.low)} and {percent(run.high)} (95 % intervals).",
            *r2,
        ]


def _r2(value: float) -> str:
    return f"{value:.3f}"


def frontier_table(plan: Plan) -> str:
    """Lay out the frontier, one line a choice."""
    return aligned([FRONTIER, *_frontier_lines(plan)], numbers=FRONTIER_NUMBERS)


def _frontier_lines(plan: Plan) -> list[tuple[str, ...]]:
    return [
        (
            f"{plan.pilot_bytes + choice.bytes:,}",
            percent(choice.excess.mean),
            percent(choice.excess.low),
            percent(choice.excess.high),
            f"{getattr(choice.sampler, 'size', plan.parties[0].n_rows):,}",
            _tag(choice.sampler),
            f"{step:.3g}" if (step := getattr(choice.solver, "step", None)) is not None else "exact",
            "chosen" * (choice == plan.chosen),
        )
        for choice in plan.frontier
    ]


def fingerprint(plan: Plan) -> str:
    """Digest all of a plan but the digest."""
    bare = msgspec.structs.replace(plan, fingerprint="")
    return hashlib.sha256(msgspec.json.encode(bare)).hexdigest()


def _tag(value: Any) -> str:
    return str(value.__struct_config__.tag)


def _listed(amounts: dict[str, int]) -> str:
    return ", ".join(f"{name} {amount:,}" for name, amount in amounts.items())


def percent(value: float) -> str:
    """Write a share with two digits."""
    if value == 0 or not math.isfinite(value):
        return f"{100 * value:.0f} %"
    digits = max(0, 1 - math.floor(math.log10(100 * value)))
    return f"{100 * value:.{digits}f} %"
