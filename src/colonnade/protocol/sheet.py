"""The job sheet: what opens every run. It says what the server will do, in plain values, and is signed by it.

A party judges the sheet by its owner's policy before anything else. From then on it answers only what an honest server
playing that sheet would ask: the route that the catalogue makes of the sheet.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec

from colonnade.contracts import Outbox, PartyCard, Roster, Script, Table
from colonnade.errors import AlignmentError, InputError, PolicyRefusedError
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.protocol.caps import PLANNED, Branches
from colonnade.protocol.fingerprints import FINGERPRINT_BYTES, Tables, fingerprint
from colonnade.protocol.identity import Identity
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.routes import Route
from colonnade.signing import DrawSeeds, Seed, digest, sheet_statement

# A sheet of a hundred parties takes less.
MAX_SHEET_BYTES = 1 << 16
# Of all parties: each column gets a name where a sheet is read.
MAX_COLUMNS = 1 << 20
# Half a digest does: it guards from slips.
ACCEPTANCE_BYTES = 16
Words = dict[str, Any]
T = TypeVar("T")


class SheetParty(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """A party and how many columns it has; each party checks its own entry, and all read the same sheet.

    `prepared` names the preparation of its columns; it is empty where the job is to prepare them.
    """

    name: str
    features: int
    label: bool = False
    weights: bool = False
    split: bool = False
    prepared: str | None = None


class JobSheet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True, kw_only=True):
    """What a run does. All that an honest server would choose is here, or follows from it and the parties' replies.

    Parameters
    ----------
    verb : str
        What the caller asked for: "fit", "evaluate", ...
    parties : tuple of SheetParty
        In the order of the model's columns.
    rows : int
        How many rows the parties hold.
    run_by : str or None
        The party that is also the server.
    task, sampler, solver, split : dict or None
        The options, as the public structs have them, but for those that are as usual.
    seed : int
        Of what server and parties draw alike while they learn or apply: folds, shuffles, dithers.
    draws : tuple of DrawSeeds
        One for each time that rows are drawn.
    coreset : tuple of (bytes, int), or None
        The digest of the rows of a coreset made before, and their number.
    model : tuple of bytes, or None
        The model that is applied: digests of the parties' parts.
    chosen : tuple of (bytes, int), or None
        The digest of rows that the caller chose, and their number.
    size : int or None
        How many rows are drawn to be looked at, evaluated or certified.
    to : str or None
        The party that learns predictions, or evaluates.
    bits : int or None
        How finely parts of predictions travel.
    align : str or None
        How records are matched, where that is the job; no rows are common before that.
    alignment : str or None
        The fingerprint of the alignment that all parties' rows go by.
    branches : Branches or None
        What is left to choose within the run, and its caps: an owner's policy judges these. Of a plan, what it may
        choose for a run of its own; all that a planner can, if it is left out.
    options : dict
        What else a verb needs.
    """

    verb: str
    parties: tuple[SheetParty, ...]
    rows: int
    run_by: str | None = None
    task: Words | None = None
    sampler: Words | None = None
    solver: Words | None = None
    split: Words | None = None
    seed: Seed = 0
    draws: tuple[DrawSeeds, ...] = ()
    coreset: tuple[bytes, int] | None = None
    model: tuple[bytes, ...] | None = None
    chosen: tuple[bytes, int] | None = None
    size: int | None = None
    to: str | None = None
    bits: int | None = None
    align: str | None = None
    alignment: str | None = None
    branches: Branches | None = None
    options: dict[str, int | bool] = {}

    def roster(self) -> Roster:
        """Make a roster of it: names of columns are not on a sheet, only how many there are."""
        return _roster(self.parties, self.rows)

    def size_of_coreset(self) -> int:
        """Tell on how many rows is learned, copies included; where that is left to choose, the fewest."""
        if self.branches is not None:
            return self.branches.least
        if self.coreset is not None:
            return self.coreset[1]
        return int((self.sampler or {}).get("size", self.rows))

    @property
    def learns(self) -> bool:
        """Whether a model comes of it."""
        return self.solver is not None or self.branches is not None

    @property
    def judged(self) -> "JobSheet":
        """The job that an owner's policy judges: of a plan, beside its pilot, any run that may be made of it."""
        if self.verb != "plan":
            return self
        branches = self.branches or Branches(PLANNED, 1, max(self.rows, 1))
        return msgspec.structs.replace(self, verb="planned", branches=branches, draws=self.draws * 2)

    def place(self, party: str) -> int:
        """Find a party's place among all."""
        return [each.name for each in self.parties].index(party)


@lru_cache(maxsize=4)  # one of a hundred parties is made of a hundred cards
def _roster(parties: tuple[SheetParty, ...], n_rows: int) -> Roster:
    return Roster(
        tuple(
            PartyCard(
                each.name,
                n_rows,
                tuple(str(column) for column in range(each.features)),
                "" if each.label else None,
                each.weights,
                each.split,
                each.prepared,
            )
            for each in parties
        )
    )


_sheets: msgspec.msgpack.Decoder[JobSheet] = msgspec.msgpack.Decoder(JobSheet)


@lru_cache(maxsize=4)  # in one process all parties read the same
def read_sheet(encoded: bytes) -> JobSheet:
    """Read a sheet, or raise msgspec's error."""
    return _sheets.decode(encoded)


class JobAccepted(Message, frozen=True):
    """The party takes part: its table's fingerprint, which tells only of changes, and a digest of it and of the sheet.

    Of a branch there is no fingerprint: it was told. Nor is there of columns that are still to be prepared.
    """

    phase: ClassVar[str] = "opening"

    digest: Annotated[bytes, Reveals.NOTHING]
    fingerprint: Annotated[bytes | None, Reveals.SCHEMA]


class OpenJob(Message, frozen=True):
    """Opens a run: the sheet, the same for all parties, and the server's signature on it."""

    phase: ClassVar[str] = "opening"
    reply: ClassVar[type[Message]] = JobAccepted

    sheet: Annotated[bytes, Reveals.SCHEMA]
    signature: Annotated[bytes, Reveals.NOTHING]

    def read(self) -> JobSheet:
        """Read the sheet, or raise msgspec's error."""
        return read_sheet(self.sheet)


class TakeBranch(Message, frozen=True):
    """Goes on by one of the sheet's branches: a sampler and a solver, the same for all parties."""

    phase: ClassVar[str] = "opening"
    reply: ClassVar[type[Message]] = JobAccepted

    choice: Annotated[bytes, Reveals.NOTHING]


RouteOf = Callable[[JobSheet, str], Route]
Objection = Callable[[JobSheet, Route, PartyData], str | None]
# Of what judges a sheet, and of a sheet that it objects to: the widest choice that it has nothing against.
Offer = Callable[[Callable[[JobSheet], str | None], JobSheet, PartyData], Branches | None]


def open_job(sheet: JobSheet, server: Identity) -> Script[Tables]:
    """Open a run at every party, and learn their tables' fingerprints."""
    prepared = {each.name: each.prepared for each in sheet.parties if each.prepared}
    encoded = msgspec.msgpack.encode(sheet)
    request = OpenJob(encoded, server.sign(sheet_statement(encoded)))
    told = yield from _accepted({each.name: request for each in sheet.parties}, encoded)
    return Tables(sheet.rows, told, sheet.alignment, prepared)


def take_branch(parties: Iterable[str], choice: bytes) -> Script[None]:
    """Tell every party by which branch the run goes on."""
    yield from _accepted(dict.fromkeys(parties, TakeBranch(choice)), choice)


def _accepted(outbox: Outbox, what: bytes) -> Script[dict[str, str]]:
    inbox = yield outbox
    fingerprints = {}
    for party, reply in checks.replies(inbox, JobAccepted).items():
        told = reply.fingerprint or b""
        if reply.digest != digest(what, told)[:ACCEPTANCE_BYTES]:
            raise checks.wrong(
                party, reply, "the digest of another job sheet than it was sent, or of another fingerprint"
            )
        if len(told) not in (0, FINGERPRINT_BYTES):
            raise checks.wrong(party, reply, f"a fingerprint of {len(told):,} bytes")
        fingerprints[party] = told.hex()
    return fingerprints


def opened(
    sheet: JobSheet, server: Identity, script: Script[T], check: Callable[[Tables], None] | None = None
) -> Script[tuple[T, Tables]]:
    """Open a run, and play it, on tables that pass a check; give its result, and the tables."""
    tables = yield from open_job(sheet, server)
    if check is not None:
        check(tables)
    return (yield from script), tables


def sheet_party(card: PartyCard) -> SheetParty:
    """Put a party's card on a sheet."""
    has = (card.label_name is not None, card.has_weights, card.has_split)
    return SheetParty(card.name, card.n_features, *has, card.prepared)


def party_on_sheet(name: str, table: Table, prepared: str | None = None) -> SheetParty:
    """Put a party on a sheet as it sees itself."""
    return SheetParty(
        name,
        len(table.feature_names),
        table.label_name is not None,
        table.weight_column is not None,
        table.split_column is not None,
        "" if table.preparing is not None else prepared,
    )


def opening_handler(route_of: RouteOf, objection_to: Objection, offer: Offer) -> Handler:
    """Answer an opening: by which route a job goes, what an owner has against it and offers is told by layers above."""

    def answer(state: PartyState, request: OpenJob, data: PartyData) -> tuple[PartyState, Message]:
        sheet, prepared = _read(request, data)
        data = data if prepared is None else data.prepared(prepared)
        route = route_of(sheet, data.name)
        judged = sheet.judged if sheet.verb == "plan" else sheet
        way = route if judged is sheet else route_of(judged, data.name)
        if objection := objection_to(judged, way, data):

            def judge(other: JobSheet) -> str | None:
                return objection_to(other, route_of(other, data.name), data)

            raise PolicyRefusedError(f"{objection}.", party=data.name, instead=offer(judge, judged, data))
        told = fingerprint(data) if data.table.preparing is None else None
        accepted = JobAccepted(digest(request.sheet, told or b"")[:ACCEPTANCE_BYTES], told)
        return state.but(sheet=digest(request.sheet), route=route, prepared=prepared), accepted

    return Handler(OpenJob, answer, after=frozenset({GREETED}), then=GREETED)


def still_signed(identity: Identity, opening: OpenJob) -> bool:
    """Tell whether the signature on a sheet counts now: pins are revoked while a run goes on."""
    return identity.is_signed(SERVER, sheet_statement(opening.sheet), opening.signature)


def _answer_branch(state: PartyState, request: TakeBranch, _: PartyData) -> tuple[PartyState, Message]:
    """Go on: the route has seen that the choice is one of the sheet's. What is signed from now on is for both."""
    accepted = JobAccepted(digest(request.choice, b"")[:ACCEPTANCE_BYTES], None)
    return state.but(sheet=digest(state.sheet, request.choice)), accepted


BRANCHING = Handler(TakeBranch, _answer_branch, after=None, then=GREETED)


def _read(request: OpenJob, data: PartyData) -> tuple[JobSheet, str | None]:
    """Read a sheet that the server signed, and that has this party as it is; and how its columns are prepared."""
    if len(request.sheet) > MAX_SHEET_BYTES:
        raise checks.wrong(SERVER, request, f"a job sheet of {len(request.sheet):,} bytes")
    identity = data.known()
    if not identity.is_signed(SERVER, sheet_statement(request.sheet), request.signature):
        raise InputError(
            "it was sent a job sheet that the server its owner pinned did not sign, or whose pin its owner revoked. "
            "Compare the line of the server in pins.toml with that of the server's own pins.toml, by telephone."
        )
    try:
        sheet = request.read()
    except (msgspec.MsgspecError, RecursionError) as error:
        raise checks.wrong(SERVER, request, f"a job sheet that cannot be read: {error}") from error
    if (sheet.align is None) == (sheet.verb == "align"):
        raise checks.wrong(SERVER, request, "a job sheet that aligns records, and is for something else")
    if sheet.align is None:
        _check_aligned(sheet, data)
    by_name, name = {each.name: each.prepared for each in sheet.parties}, identity.name
    prepared = by_name.get(name) or None
    table = data.table if prepared is None else data.prepared(prepared).table
    ours = party_on_sheet(name, table, prepared)
    if ours not in sheet.parties or sheet.rows != (table.n_rows if sheet.align is None else 0):
        raise checks.wrong(SERVER, request, "a job sheet on which this party's columns or rows are not as they are")
    if table.preparing is not None and sheet.verb not in ("align", "prepare"):
        raise checks.wrong(SERVER, request, "a job sheet by which this party's columns are not prepared first")
    checks.seed(request, sheet.seed)
    columns = [each.features for each in sheet.parties]
    if min(columns) < 0 or sum(columns) > MAX_COLUMNS:
        raise checks.wrong(SERVER, request, f"a job sheet of {sum(columns):,} columns")
    if tuple(sorted(each.name for each in sheet.parties)) != identity.parties:
        names, pinned = ", ".join(each.name for each in sheet.parties), ", ".join(identity.parties)
        raise checks.wrong(
            SERVER,
            request,
            f"a job sheet of {names}, where its owner pinned {pinned}: pins.toml must have the parties of the job, "
            "with pins that are not revoked",
        )
    return sheet, prepared


def _check_aligned(sheet: JobSheet, data: PartyData) -> None:
    """Require that the party's rows are those of the job, and of all other parties."""
    own = data.table.alignment
    if data.problem:
        raise AlignmentError(data.problem)
    if sheet.alignment is None and own is not None:
        raise AlignmentError(
            "its rows go by an alignment, and the job by none. Write [align] into federation.toml, with the mode that "
            "records were matched by."
        )
    if sheet.alignment != (own and own.fingerprint.hex()):
        raise AlignmentError(
            "its rows do not go by the alignment of the job. Align again: `colonnade align FEDERATION.toml --again`."
        )
