"""The contracts: the only things that are pluggable, and the types that pass between them."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.coreset import Coreset, Precision, StandardErrors, WeightedRows
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.blocks import Work
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.kernels.gram import Summary
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.selections import Selection
from colonnade.messages import Message, Reveals
from colonnade.preparation.reading import RowWeights
from colonnade.routes import Route
from colonnade.signing import DrawSeeds, SignedRows, VouchedRows

T = TypeVar("T")
M_co = TypeVar("M_co", covariant=True)
R_co = TypeVar("R_co", bound="Report", covariant=True)

Outbox: TypeAlias = Mapping[str, Message]
Inbox: TypeAlias = Mapping[str, Message]

# The server's side of a phase: yields a request for each party, is sent each party's reply, returns its result.
# It does no I/O and reads nothing but its arguments and inboxes, so replaying the inboxes replays the run.
Script: TypeAlias = Generator[Outbox, Inbox, T]


class Transport(Protocol):
    """Carries one round."""

    def exchange(self, outbox: Outbox) -> Inbox:
        """Deliver each party its request and bring back each party's reply."""


class KeyValues(Protocol):
    """Keys as they are compared, in row order: in memory, or read from files when they are asked for."""

    def __len__(self) -> int:
        """How many."""

    def __iter__(self) -> Iterator[bytes]:
        """Give one after the other."""

    @property
    def chunks(self) -> Any:
        """All of them, a `pyarrow.ChunkedArray` of large_binary."""

    def take(self, places: Rows) -> "KeyValues":
        """Take some, in this order."""

    def digest(self) -> bytes:
        """SHA-256 over, for each key, its length in bytes (8 bytes, little endian) and the key."""

    def let_go(self) -> None:
        """Hold no longer what can be read again."""


@dataclass(frozen=True, eq=False)
class Keys:
    """What identifies a party's rows, in one form for all parties; each key names one row.

    Parameters
    ----------
    names : tuple of str
        The key columns.
    values : KeyValues
        The key of each row that takes part.
    n_rows : int
        How many rows the table has.
    left_out : ndarray of int64
        Rows that take no part, as they repeat a key, ascending.
    columns : object
        The key columns as they came, which `take` gives rows of, as a `pyarrow.Table`.
    """

    names: tuple[str, ...]
    values: KeyValues = field(repr=False)
    n_rows: int
    left_out: Rows = field(repr=False)
    columns: Any = field(repr=False)

    @property
    def count(self) -> int:
        """How many rows take part."""
        return len(self.values)

    @property
    def rows(self) -> Rows:
        """Which rows of the table take part."""
        return np.delete(np.arange(self.n_rows), self.left_out)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Which row of all parties' common rows each key of a party is: its position, or -1 where not all have it.

    Numbers are what a party knows its own rows by, whatever their positions; those of its table if left out. `mode` is
    how records were matched, `parties` whose.
    """

    fingerprint: bytes
    positions: Rows = field(repr=False)
    numbers: Rows | None = field(default=None, repr=False)
    mode: str = ""
    parties: tuple[str, ...] = ()

    def order(self) -> Rows:
        """List the keys that all have, in the common order: their places among the party's keys."""
        common = np.flatnonzero(self.positions >= 0)
        return common[np.argsort(self.positions[common])]


class Preparing(Protocol):
    """A party's columns as they came, and its owner's rules by which they become numbers."""

    @property
    def tell_levels(self) -> bool:
        """Whether the owner lets levels be told."""

    @property
    def depends_on_rows(self) -> bool:
        """Whether it depends on the rows that count which columns come of it, or whether it can be done at all."""

    def fitted(self, weights: RowWeights | None) -> bytes:
        """Learn from rows what the rules leave open, a row of weight k counting as k, all as one if None.

        It is JSON, which stays at the party.
        """

    def told_names(self, fitted: bytes, weights: RowWeights | None) -> tuple[str, ...] | None:
        """Name the columns with their levels, where the owner lets these be told, and enough rows have them."""


class Table(Protocol):
    """A party's data: its feature columns, then its label column if it is the label party."""

    @property
    def n_rows(self) -> int:
        """How many rows."""

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the feature columns, in order."""

    @property
    def label_name(self) -> str | None:
        """Name of the label column, or None."""

    @property
    def label_levels(self) -> tuple[str, ...] | None:
        """What the label's values 0, 1, ... are called where the label is text, in their order; None of numbers."""

    @property
    def labels(self) -> "Table":
        """The same rows with the label last, and no more columns before it than come with it at no cost."""

    @property
    def key_digest(self) -> bytes | None:
        """Digest of the column that identifies rows, in row order, or None."""

    @property
    def keys(self) -> Keys | None:
        """What identifies its rows, whether or not they are aligned."""

    @property
    def row_numbers(self) -> Rows | None:
        """What the party knows its rows by over all alignments; None is by their position."""

    @property
    def alignment(self) -> Alignment | None:
        """What its rows go by, if records were matched; its digest is then the fingerprint of that."""

    def key_columns(self, rows: Rows) -> Any:
        """Give the key columns of rows, a `pyarrow.Table`, or None where it has no key."""

    def aligned(self, alignment: Alignment) -> "Table":
        """Put the rows that all parties have into the common order, and leave out the others."""

    @property
    def preparing(self) -> Preparing | None:
        """How its columns become numbers; None where they are. Until then only their names are known."""

    def prepared(self, fitted: bytes) -> "Table":
        """Make numbers of the columns by what was fitted, to these rows or to others."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What its owner should know of how it was read, or prepared."""

    @property
    def row_weights(self) -> PerRow | None:
        """How much each row counts, or None where all count 1; rows held out count 0."""

    @property
    def weight_column(self) -> Floats | None:
        """The column of row weights, if this party holds it. It counts only where a job's view says so."""

    @property
    def split_column(self) -> Flags | None:
        """The column that marks rows to hold out, if this party has one."""

    def map(self, work: Work[T], numbers: Sequence[int] | None = None) -> Iterator[T]:
        """Give what `work` makes of each block, or of those with these numbers, in their order (`RowBlocks`).

        Blocks are column-major: features, then the label if there is one.
        """

    def take(self, rows: Rows) -> Floats:
        """Copy the given rows (they may repeat), C-contiguous, columns as in blocks."""


@dataclass(frozen=True)
class ScoreBounds:
    """What one score and the total cannot exceed, whatever the data. No score is below the row's part of the weight.

    `whole` says that totals are whole numbers, of columns or clusters.
    """

    score: float
    total: float
    whole: bool = False

    def times(self, factor: float) -> "ScoreBounds":
        """Allow scores that are larger by a factor, as rounded ones can be."""
        return ScoreBounds(self.score * factor, self.total * factor)


class ScoreRule(Protocol):
    """How a party scores its own rows: a small struct that travels, and a function of the data alone."""

    def scores(self, table: Table) -> PerRow:
        """Score rows by g^(j), non-negative, one for each row."""

    def bounds(self, card: "PartyCard", n_counted: int) -> ScoreBounds:
        """Bound the scores of a party with these columns, where so many rows count."""


class View(Protocol):
    """How a party looks at its table for a time: a struct that travels, and a function of the data alone."""

    @property
    def scaling(self) -> "Scaling":
        """In which units columns enter."""

    def of(self, table: Table) -> Table:
        """Show the table so: the same rows and columns, in other units, or with other weights."""

    def equals(self, other: "View") -> bool:
        """Tell whether the other shows the same of any table."""


@dataclass(frozen=True)
class PartyCard:
    """What a party says of itself in the hello round.

    `prepared` names the preparation that its columns came of, and is empty where they are still to be prepared. A label
    that is text has classes, and no numbers.
    """

    name: str
    n_rows: int
    feature_names: tuple[str, ...]
    label_name: str | None
    has_weights: bool = False
    has_split: bool = False
    prepared: str | None = None
    label_is_text: bool = False

    @cached_property
    def n_features(self) -> int:
        """How many feature columns."""
        return len(self.feature_names)


@dataclass(frozen=True)
class Roster:
    """The parties of a federation, in order, and the fingerprint of the alignment of their rows, if there is one."""

    cards: tuple[PartyCard, ...]
    alignment: str | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parties' names."""
        return tuple(card.name for card in self.cards)

    @cached_property
    def n_rows(self) -> int:
        """The number of rows, which all parties share."""
        return self.cards[0].n_rows

    @cached_property
    def label_party(self) -> str | None:
        """The party that holds the label, if any."""
        return next((card.name for card in self.cards if card.label_name is not None), None)

    @cached_property
    def weight_party(self) -> str | None:
        """The party that holds the rows' weights, if any."""
        return next((card.name for card in self.cards if card.has_weights), None)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """All feature names in the parties' order; one that several parties use is written party.name."""
        uses = Counter(name for card in self.cards for name in card.feature_names)
        pairs = [(card.name, name) for card in self.cards for name in card.feature_names]
        names = tuple(name if uses[name] == 1 else f"{party}.{name}" for party, name in pairs)
        # Where that makes a new clash, all are written out.
        return names if len(set(names)) == len(names) else tuple(f"{party}.{name}" for party, name in pairs)

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where each party's features stand among all of them."""
        ends = np.cumsum([card.n_features for card in self.cards]).tolist()
        return {card.name: slice(end - card.n_features, end) for card, end in zip(self.cards, ends, strict=True)}


# How columns enter: their own; divided by their standard deviation; and less their mean before that.
Scaling: TypeAlias = Literal["own", "scaled", "standard"]


@dataclass(frozen=True, eq=False)
class JobView:
    """What counts in a job: which rows, how much, and in which units their columns enter.

    `row_weights`, one a row, is 0 for rows held out; None where all rows count 1. A feature enters as (value -
    shift) / scale, both of shape (n_features,); None where it enters as it is.
    """

    row_weights: PerRow | None = None
    shift: Floats | None = None
    scale: Floats | None = None


@dataclass(frozen=True, eq=False)
class Draw:
    """S, ascending; S^(j), the part of it that each party drew, as it signed it; what each was asked and answered.

    The rest, this share on average, was drawn evenly from a seed that all sides know. `totals` are the sums of the
    parties' scores of all rows. So many rows were drawn evenly, of so many draws: where they are distinct, S has fewer.
    Of many parties one has vouched for what all drew.
    """

    rows: Rows
    drawn: Mapping[str, SignedRows]
    exchanged: Mapping[str, Sequence[Message]]
    totals: Mapping[str, float]
    even_share: float = 0.0
    even_seed: int = 0
    n_even: int = 0
    n_draws: int = 0
    vouched: VouchedRows | None = None

    def by(self, party: str) -> Rows:
        """Give what a party drew."""
        return self.drawn[party].rows

    def told_to(self, party: str) -> tuple[SignedRows, ...] | VouchedRows:
        """Give what a party is to know of the draw: what was vouched for, or what each of the others signed."""
        return self.vouched or self.of_others(party)

    def of_others(self, party: str) -> tuple[SignedRows, ...]:
        """Give what the other parties drew, in the order of their names."""
        return tuple(each for name, each in sorted(self.drawn.items()) if name != party)


@dataclass(frozen=True)
class Agreed:
    """What a job sheet settles, as one party reads it.

    Parameters
    ----------
    party : str
        Who reads it.
    seed : int
        Of what server and parties draw alike while they learn.
    seeds : DrawSeeds or None
        Of the draw, if rows are drawn.
    size, least : int
        On how many rows is learned, at most and at least.
    scored : bool
        Whether rows were scored before in the run, as they are for this draw.
    takes_all : bool
        Whether all rows that count are taken, and none drawn.
    """

    roster: Roster
    party: str
    seed: int
    seeds: DrawSeeds | None
    size: int
    least: int
    scored: bool = False
    takes_all: bool = False

    @property
    def place(self) -> int:
        """The party's place among all."""
        return self.roster.names.index(self.party)


class SumMechanism(Protocol):
    """Round 3 of Algorithm 1: the sum over parties of their scores on the drawn rows."""

    def __call__(self, roster: Roster, draw: Draw) -> Script[Floats]:
        """Sum the scores of the drawn rows over the parties, in the clear or otherwise."""


class Sampler(Protocol):
    """Agrees with the parties on a coreset; afterwards every party knows its rows."""

    def check(self, task: "Task[object]", roster: Roster, run_by: str | None) -> None:
        """Raise `InputError` where it cannot draw for this task, from these parties, or with a server run by one."""

    def between_machines(self, n_parties: int) -> Self:
        """Decide what was left open, where what is sent leaves this process."""

    def scored_by(self, rule: ScoreRule, roster: Roster) -> ScoreRule:
        """Say what parties score their rows by, where the task's rule is this."""

    def sample(
        self, roster: Roster, rule: ScoreRule, rng: np.random.Generator, row_weights: PerRow | None = None
    ) -> Script[Coreset]:
        """Draw rows and weights; the parties know the rows' own weights."""

    def route(self, rule: ScoreRule, agreed: Agreed) -> Route:
        """Say what `sample` asks of a party: it answers nothing else."""


@dataclass(frozen=True)
class Rounding:
    """How parts of predictions travel, if not as they are: bits a part, and each party's dither."""

    bits: int
    seeds: dict[str, int]

    @classmethod
    def of(cls, bits: int | None, roster: Roster, rng: np.random.Generator) -> "Rounding | None":
        """Draw the seeds, if parts are to be rounded at all."""
        if bits is None:
            return None
        seeds = rng.integers(2**63, size=len(roster.names)).tolist()
        return cls(bits, dict(zip(roster.names, seeds, strict=True)))


class Report(Protocol):
    """What an evaluation says: a struct of numbers."""

    @property
    def n_evaluated(self) -> int:
        """On how many rows it rests."""

    @property
    def cost(self) -> float:
        """The cost on all rows, or an estimate of it."""

    def in_words(self) -> str:
        """Put the numbers that matter first into a few words."""


# Values, numbers of clusters, or chances of classes.
Predictions: TypeAlias = Floats | Rows | ClassPredictions
# A party's part of a model: coefficients, or centres and the units in which distances to them are measured.
ModelPart: TypeAlias = tuple[Floats | None, Floats | None, Floats | None]


class Model(Protocol[R_co]):
    """What was learned: applied through the parties, who know which rows are selected; kept; shown."""

    needs_label: ClassVar[bool]  # to be evaluated
    record: ClassVar[type[msgspec.Struct]]  # what `model.json` says of it
    report: ClassVar[type["Report"]]  # what its evaluation gives

    @property
    def feature_names_in_(self) -> tuple[str, ...]:
        """The features it was learned from, in the order of the parties' columns."""

    def parts(self, roster: Roster) -> Mapping[str, ModelPart]:
        """Give each party's part, as it is sent to it."""

    def predictions(self, roster: Roster, selected: Selection, rounding: Rounding | None) -> Script[Predictions]:
        """Predict the selected rows."""

    def delivery(self, roster: Roster, selected: Selection, to: str) -> Script[None]:
        """Let one party learn predictions of the selected rows, and nobody else."""

    def evaluation(
        self, roster: Roster, selected: Selection, rounding: Rounding | None, *, sampled: bool
    ) -> Script[R_co]:
        """Count its cost on the selected rows: all that count, or some drawn evenly."""

    def evaluation_by(self, roster: Roster, selected: Selection, by: str, *, sampled: bool) -> Script[R_co]:
        """Let one party do so: the server learns sums only."""

    def predict(self, X: npt.ArrayLike) -> Floats | Rows:
        """Predict rows that are all in one place."""

    def table(self) -> str:
        """Lay it out for people."""

    def files(self) -> dict[str, bytes]:
        """Write it as the files that keep it."""

    @classmethod
    def restored(cls, record: Any, features: tuple[str, ...], numbers: dict[str, Floats]) -> Self:
        """Make it of what `files` wrote: the record, and the columns of the features' lines."""


class Task(Protocol[M_co]):
    """What to learn."""

    needs_label: ClassVar[bool]
    model: ClassVar[type[Model[Any]]]

    @property
    def scaling(self) -> Scaling:
        """In which units the parties' columns enter."""

    def check(self, roster: Roster) -> None:
        """Raise `InputError` where this federation cannot do the task."""

    def score_rule(self) -> ScoreRule:
        """Say how parties score rows for this task."""

    def fit_rows(self, rows: WeightedRows, roster: Roster, rng: np.random.Generator) -> M_co:
        """Solve the task on rows in one place."""

    def cost(self, model: Any, features: Floats, labels: Floats | None, weights: Floats, total_weight: float) -> float:
        """Compute the objective of a model of this task on weighted rows."""

    def in_own_units(self, model: Any, view: JobView) -> M_co:
        """Turn a model of columns in other units into one of the columns as they are."""


class _KnownByType(type(Protocol)):  # type: ignore[misc]  # typing's own, which has no public name
    """Compares once for each type of task all that it has: that takes longer than to sign a job sheet."""

    _known: ClassVar[dict[tuple[type, type], bool]] = {}

    def __instancecheck__(cls, task: object) -> bool:
        pair = (cls, type(task))
        if pair not in cls._known:
            cls._known[pair] = super().__instancecheck__(task)
        return cls._known[pair]


@runtime_checkable
class LinearTask(Protocol[M_co], metaclass=_KnownByType):
    """A task whose model is linear: ``sum_i w_i (x_i.theta + theta_0 - y_i)^2 + n (l2 |theta|^2 + l1 |theta|_1)``."""

    fit_intercept: bool

    def penalties(self) -> tuple[float, float]:
        """Give l2 and l1, or raise `UnsupportedError` where one is to be chosen on rows in one place."""

    def penalty(self, coef: Floats) -> float:
        """Compute l2 |theta|^2 + l1 |theta|_1."""

    def fold_seed(self, rng: np.random.Generator) -> int | None:
        """Draw the seed by which rows are dealt to folds, where a penalty is to be chosen."""

    @property
    def takes_folds(self) -> bool:
        """Whether one is."""

    def fit_summaries(self, parts: Sequence[Summary], total_weight: float, roster: Roster) -> tuple[M_co, float]:
        """Solve the task on rows that are known only in sum, one part a fold; give the model and its objective."""

    def penalties_of(self, model: Any) -> tuple[float, float]:
        """Give the l2 and l1 that a model was learned with, also where one was chosen."""

    def linear_model(self, coef: Floats, intercept: float, roster: Roster) -> M_co:
        """Make the model of what was learned."""


@runtime_checkable
class LogisticTask(Protocol[M_co], metaclass=_KnownByType):
    """A task whose model gives chances of classes, by a linear function: ``sum_i w_i loss_i + n (l2 .. + l1 ..)``."""

    fit_intercept: bool
    classes: tuple[Any, ...] | None

    def penalties(self) -> tuple[float, float]:
        """Give l2 and l1, or raise `UnsupportedError` where one is to be chosen on rows in one place."""

    def penalties_of(self, model: Any) -> tuple[float, float]:
        """Give the l2 and l1 that a model was learned with, also where one was chosen."""

    def settled(self, roster: Roster, n_told: int) -> Script[Self]:
        """Ask for the label's classes, before anything else; draws will tell those of so many rows."""

    def settling_route(self, agreed: Agreed, n_told: int) -> Route:
        """Say what `settled` asks of a party."""

    def codes_of(self, labels: Floats) -> Rows:
        """Give the place of each label among the classes."""

    def label_values(self) -> Floats:
        """Give the numbers that stand for the classes where labels travel, in the order of the classes."""

    def class_model(self, coef: Floats, intercept: Floats, roster: Roster) -> M_co:
        """Make the model of what was learned: shapes (1, d) and (1,) for two classes, (K, d) and (K,) for more."""


@runtime_checkable
class ClusteringTask(Protocol[M_co], metaclass=_KnownByType):
    """A task whose model is a set of centres."""

    n_clusters: int
    n_starts: int

    def clustering_model(self, centers: Floats, roster: Roster) -> M_co:
        """Make the model of what was learned."""


@dataclass(frozen=True)
class Solution(Generic[T]):
    """What a solver found: the model, what is worth knowing of how it was found, and what its rows say of it.

    `precision` finds what `certify` needs, and `errors` the coefficients' standard errors in a view, where the solver
    has seen what they take: at once, or `later`, when somebody asks for them.
    """

    model: T
    facts: Mapping[str, float]
    precision: Callable[[], Precision | None] | None = None
    errors: Callable[[JobView], StandardErrors] | None = None
    later: bool = False


class Solver(Protocol):
    """Learns on a coreset whose rows the parties know."""

    # What of single rows it shows to the server, or to other parties.
    shows: ClassVar[tuple[Reveals, ...]]

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:
        """Raise `UnsupportedError` where it cannot do the task, `InputError` where not with these parties or server."""

    def between_machines(self, n_parties: int) -> Self:
        """Decide what was left open, where what is sent leaves this process."""

    def solve(self, task: Task[T], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[T]]:
        """Find a model of the task."""

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Say what `solve` asks of a party: it answers nothing else."""
