"""A party's side of the exchange: a closed table of handlers, the order they are legal in, the owner's policy.

A session does no I/O: it is given a request and gives back a reply. What it holds between requests is a small
struct; what can be computed again from the data (scores) is only cached.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

from colonnade.contracts import Alignment, Keys, ScoreRule, Table, View
from colonnade.errors import (
    AlignmentError,
    ColonnadeError,
    EngineError,
    InputError,
    LocalProtocolError,
    RemoteProtocolError,
)
from colonnade.kernels.arrays import Rows
from colonnade.kernels.per_row import PerRow
from colonnade.kernels.selections import CountedRows
from colonnade.messages import Message
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import KeptHere, Memory, Note, table_key
from colonnade.protocol.policy import Policy
from colonnade.protocol.preparations import Preparations, PreparationsHere, is_named
from colonnade.protocol.refusal import Refused, refused
from colonnade.routes import END, Route
from colonnade.signing import digest

T = TypeVar("T")

# The steps every phase shares; a phase names further ones of its own.
NEW, GREETED, SELECTED = "new", "greeted", "selected"
# Of the secret that a party names its table and its preparations with.
KEY_BYTES = 32
# Scores of so many rules are kept: one or two are in use, and a server that asks for ever new ones fills no memory.
KEPT_RULES = 4
# How rows came about, and so what they weigh: the same, what they count, 1 over their scores, or over the chance of
# being there at all; or nobody here knows.
Weighing = Literal["evenly", "all", "scores", "distinct", "given"]


@dataclass(frozen=True, eq=False)
class Delivery:
    """Predictions that a party was given: values, numbers of clusters or chances of classes; of which rows, ascending.

    Where they are good for nothing, there are none, and a `problem` that only the party knows of. `keys` are the key
    columns of these rows, a `pyarrow.Table`, where the party has a key. All rows are `chosen` unlisted.
    """

    chosen: Rows | CountedRows
    predictions: Any
    problem: str = ""
    keys: Any = None

    @property
    def rows(self) -> Rows:
        """The list of the rows."""
        return self.chosen.ids if isinstance(self.chosen, CountedRows) else self.chosen

    def __repr__(self) -> str:
        return f"Delivery({len(self.chosen)} rows, not shown)"


@dataclass(frozen=True)
class PartyState:
    """What a party remembers between two requests.

    Parameters
    ----------
    step : str
        How far the exchange is: decides which requests are legal next.
    view : View or None
        How this run looks at the table; None is as it is.
    rows : ndarray of int64, shape (size,), CountedRows or None
        The coreset's rows, once they are known; before that, the party's own draw. All that count are not listed.
    joint_key : bytes or None
        The joint seed of a committed draw.
    weighing : {"evenly", "all", "scores", "distinct", "given"}
        How the rows came about, which decides what they weigh (`colonnade.protocol.weighing`).
    even_share : float
        The share of rows drawn evenly, where the others were drawn by scores.
    draw_factor, even_factor : float or None
        Of distinct draws, the party's own by its scores and the even one: `colonnade.kernels.draws.chances`.
    exchanged : tuple of Message
        What was asked and answered since rows were scored: a secure sum is bound to it.
    secret : object or None
        What a secure sum keeps at the party between two of its rounds; it alone reads it.
    learning : object or None
        What a solver of many rounds keeps at the party: a frozen struct of its own, that it alone reads.
    answered_digests : tuple of bytes
        Of what a secure solver asked in this run: it may ask that again, and nothing else.
    sheet : bytes
        The digest of the job sheet that opened the run.
    route : Route or None
        What an honest server playing that sheet may still ask; None, where no run was opened, is anything.
    notes : tuple of Note
        What the party will remember of this run.
    aligned : Alignment or None
        What the run aligned the party's rows by.
    prepared : str or None
        The name of the preparation that the job's columns come of, where they are prepared.
    run_nonce : bytes
        What no other run of this party has, and this one still has after a restart: contributions are made of it.
    has_committed : bool
        Whether it has committed to a draw in this run: it does so once.
    """

    step: str = NEW
    joint_key: bytes | None = None
    weighing: Weighing = "given"
    even_share: float = 0.0
    draw_factor: float | None = None
    even_factor: float | None = None
    sheet: bytes = b""
    route: Route | None = None
    notes: tuple[Note, ...] = ()
    view: View | None = None
    rule: ScoreRule | None = None
    rows: Rows | CountedRows | None = None
    exchanged: tuple[Message, ...] = ()
    secret: object | None = None
    learning: object | None = None
    answered_digests: tuple[bytes, ...] = ()
    received: Delivery | None = None
    aligned: Alignment | None = None
    prepared: str | None = None
    run_nonce: bytes = b""
    has_committed: bool = False

    def __repr__(self) -> str:
        return f"PartyState(step={self.step!r}, not shown)"  # the rest is made of the party's columns and keys

    def but(self, **fields: Any) -> "PartyState":
        """Give the same with other values of some fields: as `dataclasses.replace`, which takes six times as long."""
        other = object.__new__(PartyState)
        object.__setattr__(other, "__dict__", self.__dict__ | fields)
        return other

    def selected(self) -> Rows:
        """List the coreset's rows; the order of steps sees to it that there are some."""
        selection = self.selection()
        return selection.ids if isinstance(selection, CountedRows) else selection

    def selection(self) -> Rows | CountedRows:
        """Give them, all that count unlisted."""
        if self.rows is None:
            raise LocalProtocolError("No rows were agreed on: sample first.")
        return self.rows

    def delivery(self, predictions: Any, table: Table) -> Delivery:
        """Put predictions beside the coreset's rows, which are listed only where their keys are looked up."""
        keys = None if table.keys is None else table.key_columns(self.selected())
        return Delivery(self.selection(), predictions, keys=keys)

    @property
    def n_places(self) -> int:
        """How many places windows are cut from: all rows of the table, or the list of rows."""
        rows = self.selection()
        return rows.n_rows if isinstance(rows, CountedRows) else len(rows)


NOTHING_YET = PartyState()


@dataclass(frozen=True)
class PartyData:
    """A party's table, with its scores kept: they depend on the table and the rule alone.

    The last view of the table is kept likewise, with its scores. Where the party has an identity, it can take part in
    secure sums.
    """

    table: Table
    identity: Identity | None = None
    policy: Policy = field(default_factory=partial(Policy, level="open"))
    memory: Memory = field(default_factory=KeptHere, repr=False)
    # Why its rows are those of no alignment any more, if that is so.
    problem: str = ""
    preparations: Preparations = field(default_factory=PreparationsHere, repr=False)
    # The name of the one that the table's columns come of, if they are prepared.
    preparation: str = ""
    _scores: dict[ScoreRule, PerRow] = field(default_factory=dict, repr=False)
    _views: list[tuple[View, "PartyData"]] = field(default_factory=list, repr=False)
    _unseen: "PartyData | None" = field(default=None, repr=False)
    _prepared: list[tuple[str, "PartyData"]] = field(default_factory=list, repr=False)
    _kept: dict[Callable[[Table], Any], Any] = field(default_factory=dict, repr=False)

    def seen(self, view: View | None) -> "PartyData":
        """Look at the party's own table in this way, however it is looked at now."""
        if self._unseen is not None:
            return self._unseen.seen(view)
        if view is None:
            return self
        # A solver of many rounds comes with the same view each time: no array is compared then.
        if not self._views or not (self._views[0][0] is view or self._views[0][0].equals(view)):
            self._views[:] = [(view, replace(self, table=view.of(self.table), **_nothing_kept(), _unseen=self))]
        return self._views[0][1]

    def prepared(self, name: str) -> "PartyData":
        """Look at the columns as the preparation of this name makes them."""
        if self._unseen is not None:
            return self._unseen.prepared(name)
        if not self._prepared or self._prepared[0][0] != name:
            fitted = self._fitted(name)
            with self.preparing():
                table = self.table.prepared(fitted)
            self.preparations.tell(table.notes)
            self._prepared[:] = [(name, replace(self, table=table, preparation=name, **_nothing_kept()))]
        return self._prepared[0][1]

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Keep from others what an error says of the columns: it quotes values."""
        try:
            yield
        except InputError as error:
            raise self.preparations.failed(error) from None

    def _fitted(self, name: str) -> bytes:
        if self.table.preparing is None:
            raise InputError("the job goes by columns that it prepared, and its owner has no [prepare] any more.")
        if (fitted := self.preparations.find(name)) is None:
            raise InputError(
                f"it does not have the preparation {name[:8]} of the job's columns, which was kept in its state "
                "folder. Use that folder, or learn the model again."
            )
        if not is_named(name, self.table_key, fitted):
            raise InputError(
                f"the preparation {name[:8]} of its columns is not as it was when it was kept. Restore its state "
                "folder from a copy, or learn the model again."
            )
        return fitted

    def of_prepared(self, known_by: bytes) -> bytes:
        """Give a digest of something that is known by one, and of the preparation of the columns that it is of."""
        return digest(known_by, self.preparation.encode()) if self.preparation else known_by

    def fresh_key(self) -> bytes:
        """Draw a key for names that tell nothing."""
        return self.known().fresh(KEY_BYTES)

    @cached_property
    def table_key(self) -> bytes:
        """The party's secret for names that tell nothing, which stays; it is made where there is none yet."""
        return table_key(self.memory, self.fresh_key)

    @property
    def name(self) -> str:
        """The party's, as far as it is known."""
        return "" if self.identity is None else self.identity.name

    def known(self) -> Identity:
        """Give the party's identity, as it is now, without which it can sign nothing, and check nobody's signature."""
        if self.identity is None:
            raise InputError(
                "it has no identity and no pins of the other parties and of the server, and cannot tell who says what. "
                "Give it an identity (between machines, [identity] in its party.toml)."
            )
        return self.identity.now()

    def check_aligned(self) -> None:
        """Require that its rows are what the other parties take them for."""
        if self.problem:
            raise AlignmentError(self.problem)

    def keys(self) -> Keys:
        """Give what identifies its rows, without which they cannot be aligned."""
        if self.table.keys is None:
            raise InputError("its table has no key. Name the column that identifies rows: key = in its [data].")
        return self.table.keys

    def once(self, compute: Callable[[Table], T]) -> T:
        """Compute something of the table that no request changes, once; `compute` is one of the module's functions."""
        if compute not in self._kept:
            self._kept[compute] = compute(self.table)
        kept: T = self._kept[compute]
        return kept

    def scores(self, rule: ScoreRule | None) -> PerRow:
        """Score all rows, once a rule: few scores are kept, of many only how to compute them."""
        if rule is None:
            raise LocalProtocolError("No score rule was agreed: ask for the total first.")
        if rule not in self._scores:
            if len(self._scores) == KEPT_RULES:
                self._scores.pop(next(iter(self._scores)))
            self._scores[rule] = rule.scores(self.table).kept()
        return self._scores[rule]


def _nothing_kept() -> dict[str, Any]:
    """Give what a table that nobody has looked at yet keeps."""
    return {"_scores": {}, "_views": [], "_kept": {}, "_prepared": []}


@dataclass(frozen=True)
class Handler:
    """How a party answers one kind of request.

    Parameters
    ----------
    answer : callable
        ``(state, request, data) -> (state, reply)``, pure but for the score cache.
    after : frozenset of str, or None
        The steps at which the request is legal; None is any time after the hello.
    then : str
        The step it leads to.
    solver : str or None
        The solver it belongs to, if to one: an owner may answer some and not others.
    leaves_nothing : bool
        Whether the state, but for what may come next, is after it as it was before.
    """

    request: type[Message]
    answer: Callable[[PartyState, Any, PartyData], tuple[PartyState, Message]]
    after: frozenset[str] | None
    then: str
    solver: str | None = None
    leaves_nothing: bool = False

    def is_legal(self, step: str) -> bool:
        """Tell whether the request may come at this step."""
        return step != NEW if self.after is None else step in self.after


class PartySession:
    """Answers requests about one table, by handlers, as far as its owner's policy lets it.

    Runs begin by the route `opening`. Without an identity, which says who it is to the other parties, it signs nothing.
    What it is to remember from run to run goes to `memory`.
    """

    def __init__(
        self,
        table: Table,
        handlers: Iterable[Handler],
        policy: Policy,
        identity: Identity | None = None,
        memory: Memory | None = None,
        opening: Route | None = None,
        problem: str = "",
        preparations: Preparations | None = None,
    ) -> None:
        self.state = NOTHING_YET
        # What was wrong when it refused last, paths and all, which are for the owner.
        self.why_refused = ""
        self._opening = opening
        kept = preparations or PreparationsHere()
        self._data = PartyData(table, identity, policy, memory or KeptHere(), problem, kept)
        self._handlers = {handler.request: handler for handler in handlers}
        self._policy = policy

    def answer(self, request: Message) -> Message:
        """Answer one request, of any kind and from anyone, or say why not; a refused one leaves the state as it was.

        One that no honest server sends ends the run.
        """
        self.why_refused = ""
        handler = self._handlers.get(type(request))
        if handler is None:
            return Refused("request", f"a {request.kind} is not a request.")
        route = self.state.route
        left = None if route is None else route.after(request)
        if route is not None and left is None:
            return Refused("order", f"{route.objection(request)}. A party answers only what the job sheet entails.")
        if not handler.is_legal(self.state.step):
            why = f"a {request.kind} is not legal at step {self.state.step!r}. Follow the order of the phases."
            return Refused("order", why)
        if objection := self._policy.objection(request, handler.solver):
            return Refused("policy", f"{objection}.")
        # A request that may come at any time begins a phase: what an earlier one kept secret goes.
        secret = None if handler.after is None else self.state.secret
        state = self.state.but(secret=secret, route=left, step=handler.then)
        try:
            data = self._data if state.prepared is None else self._data.prepared(state.prepared)
            state, reply = handler.answer(state, request, data.seen(state.view))
        except RemoteProtocolError as error:
            # No honest server sends this. What was wrong with it can depend on the data: there is no second try.
            self.state = self.state.but(route=END) if self.state.sheet else self.state
            return refused(error)
        except EngineError:
            raise  # what it says is for the owner
        except ColonnadeError as error:
            self.why_refused = str(error)
            return refused(error)
        if reason := self._policy.refusal(reply):
            return Refused("policy", f"{reason}.")
        if state.notes is not self.state.notes:
            self._data.memory.keep(state.notes)
        self.state = state
        return reply

    def expects(self, request: Message) -> bool:
        """Tell whether an honest server may ask this next in the job."""
        return self.state.route is not None and self.state.route.after(request) is not None

    def pass_over(self, request: Message) -> bool:
        """Be where it would be after a request that it answered before, if nothing else is left of that."""
        handler = self._handlers.get(type(request))
        if handler is None or not handler.leaves_nothing or not self.expects(request):
            return False
        left = None if self.state.route is None else self.state.route.after(request)
        self.state = self.state.but(step=handler.then, route=left)
        return True

    @property
    def n_rows(self) -> int:
        """How many rows its table has."""
        return self._data.table.n_rows

    @property
    def preparations(self) -> Preparations:
        """Where it keeps how it prepared its columns."""
        return self._data.preparations

    def bring(self, name: str, fitted: bytes) -> None:
        """Take how it prepared its columns for a model from that model, which may come from anyone."""
        if not is_named(name, self._data.table_key, fitted):
            raise InputError(
                f"The model's preparation of columns of {self._data.name!r} is not as it was when it was learned. Take "
                "the model's files as they were written, or learn it again."
            )
        self._data.preparations.keep(name, fitted)

    def aligned(self, alignment: Alignment) -> "PartySession":
        """Give a session on the same data in the common order."""
        data, other = self._data, self._like()
        other._data = replace(data, table=data.table.aligned(alignment), problem="", **_nothing_kept())
        return other

    def greeted(self, run_nonce: bytes) -> "PartySession":
        """Open another session on the same data, as after a hello: each run has its own.

        The bytes are drawn for the run, and given again where it is rebuilt.
        """
        other = self._like()
        other.state = NOTHING_YET.but(step=GREETED, route=self._opening, run_nonce=run_nonce)
        return other

    def _like(self) -> "PartySession":
        """Copy it: as `copy.copy`, which takes four times as long."""
        other = object.__new__(PartySession)
        other.__dict__.update(self.__dict__)
        return other
