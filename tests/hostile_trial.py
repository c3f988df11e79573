"""A server, and parties, that send what they like: everything else (TLS, identities, order, policy) is the real thing.

The parties are those of `serve_party`, each with a party.toml, a policy, and the identity and pins that `colonnade
certs new` makes. An attack is a function that is given the server, and gives what it read.
"""

import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Outbox, Script
from colonnade.errors import ColonnadeError
from colonnade.job_sheets import sheet_of
from colonnade.kernels.arrays import Floats
from colonnade.ledger import SERVER
from colonnade.messages import UNCOUNTED, Message, Reveals
from colonnade.node.certificates import new_certificates
from colonnade.node.desk import PartyDesk
from colonnade.node.files import IdentityFile, read_party_file
from colonnade.node.identity_files import read_identity
from colonnade.node.log import EventLog
from colonnade.node.party import opened_desk, serve_party
from colonnade.protocol.hello import hello
from colonnade.protocol.identity import Identity
from colonnade.protocol.policy import rows_revealed
from colonnade.protocol.refusal import Refused
from colonnade.protocol.sheet import JobAccepted, JobSheet, OpenJob, open_job
from colonnade.signing import sheet_statement
from colonnade.transports.endpoints import ServerEndpoint
from colonnade.transports.envelopes import Answer, Ask, Goodbye, RunEnd
from colonnade.transports.grpc.hub import Hub
from colonnade.transports.grpc.party import GrpcParty
from network_trial import events, free_port, tls, write_party_file

T = TypeVar("T")
M = TypeVar("M", bound=Message)
# What a party says in place of its honest reply to a request.
Lie = Callable[[Message, Message], Message]
SECONDS = 20.0
N_ROWS = 100


class TurnedAwayError(Exception):
    """A party refused a request of an attack."""

    def __init__(self, party: str, request: Message, refusal: Refused) -> None:
        super().__init__(f"{party} refused {request.kind}: {refusal.reason}")
        self.party, self.request, self.refusal = party, request, refusal


class HostileServer:
    """Sends any message to any party, in any order, in any run; keeps all that it is told."""

    def __init__(self, hub: Hub, folder: Path, names: Sequence[str], *, are_aligned: bool = True) -> None:
        self._hub = hub
        self._codec = codec()
        self.folder = folder
        self._run = ""
        self._numbers: dict[str, int] = {}
        self._identity = identity_of(folder, SERVER)
        self.received: list[tuple[str, Message]] = []
        self.names = names
        if are_aligned:
            self.greet()

    def greet(self) -> None:
        """Let the parties introduce themselves."""
        self.begin("hello")
        self.roster = self.play(hello(self.names))

    def begin(self, name: str = "run") -> None:
        """End the run there is, and begin one that nothing has opened yet."""
        if self._run:
            self._hub.tell_all(RunEnd(self._run, "done", ""))
        self._run, self._numbers = f"{name}-{secrets.token_hex(6)}", {}

    @contextmanager
    def besides(self) -> Iterator[None]:
        """Leave the run there is open, play others, and come back to it."""
        kept, self._run = (self._run, self._numbers), ""
        yield
        self._hub.tell_all(RunEnd(self._run, "done", ""))
        self._run, self._numbers = kept

    def new_run(self, verb: str = "fit", **what: object) -> None:
        """Begin a run that is opened by an honest, signed sheet of a job of the server's choice."""
        self.open(sheet_of(verb, what, self.roster, None))

    def open(self, sheet: JobSheet) -> None:
        """Begin a run by a sheet of the server's choice, which it signs."""
        self.begin(sheet.verb)
        self.play(open_job(sheet, self._identity))

    def open_each(self, sheets: Mapping[str, JobSheet], signed_by: str = SERVER) -> None:
        """Begin a run by a sheet for each party, signed by the server or by a party that joins forces with it."""
        self.begin()
        signer, outbox = identity_of(self.folder, signed_by), {}
        for party, sheet in sheets.items():
            encoded = msgspec.msgpack.encode(sheet)
            outbox[party] = OpenJob(encoded, signer.sign(sheet_statement(encoded)))
        self.told_by_each(outbox, JobAccepted)

    def honestly(self, script: Script[T], verb: str, **what: object) -> T:
        """Play an honest job from its sheet to its end."""
        self.new_run(verb, **what)
        return self.play(script)

    def ask(self, party: str, request: Message) -> Message:
        """Ask one party, and give its reply, a refusal too."""
        return self.ask_each({party: request})[party]

    def ask_instead(self, party: str, request: Message) -> Message:
        """Ask one party something else in place of the last request, as if the line had been lost."""
        self._numbers[party] -= 1
        return self.ask(party, request)

    def ask_each(self, outbox: Outbox) -> dict[str, Message]:
        """Ask several parties at once."""
        asks = {}
        for party, request in outbox.items():
            number = self._numbers[party] = self._numbers.get(party, 0) + 1
            asks[party] = Ask(self._run, number, self._codec.encode(request))
        replies = {party: self._codec.decode(reply, party=party) for party, reply in self._hub.ask(asks).items()}
        for party, reply in replies.items():
            # A party that refuses does not count the request.
            self._numbers[party] -= isinstance(reply, Refused)
        self.received += replies.items()
        return replies

    def told(self, party: str, request: Message, kind: type[M]) -> M:
        """Ask one party for a reply of this kind; a refusal is an exception."""
        return self.told_by_each({party: request}, kind)[party]

    def told_by_each(self, outbox: Outbox, kind: type[M]) -> dict[str, M]:
        """Ask several parties for replies of this kind."""
        replies = {}
        for party, reply in self.ask_each(outbox).items():
            if isinstance(reply, Refused):
                raise TurnedAwayError(party, outbox[party], reply)
            assert isinstance(reply, kind), reply.kind
            replies[party] = reply
        return replies

    def told_by_all(self, request: Message, kind: type[M]) -> dict[str, M]:
        """Ask every party the same."""
        return self.told_by_all_of(self.roster.names, request, kind)

    def told_by_all_of(self, names: Sequence[str], request: Message, kind: type[M]) -> dict[str, M]:
        """Ask these parties the same."""
        return self.told_by_each(dict.fromkeys(names, request), kind)

    def play(self, script: Script[T], outbox: Outbox | None = None) -> T:
        """Play an honest script in this run to its end: from its start, or on from a round that was altered."""
        while True:
            try:
                outbox = next(script) if outbox is None else script.send(self._replies(outbox))
            except StopIteration as end:
                result: T = end.value
                return result

    def play_until(self, script: Script[Any], kind: type[Message], outbox: Outbox | None = None) -> dict[str, Message]:
        """Play an honest script in this run, and stop before the round that asks for this kind; give its requests."""
        outbox = next(script) if outbox is None else script.send(self._replies(outbox))
        while not all(isinstance(request, kind) for request in outbox.values()):
            outbox = script.send(self._replies(outbox))
        return dict(outbox)

    def _replies(self, outbox: Outbox) -> dict[str, Message]:
        return self.told_by_each(outbox, Message)

    def disclosed(self, party: str | None = None) -> set[Reveals]:
        """Collect what parties, or one of them, revealed, beside names and counts of columns."""
        told = {kind for name, reply in self.received if party in (None, name) for kind in reply.reveals()}
        return told - UNCOUNTED

    def rows_disclosed(self) -> int:
        """Count rows as a party's policy does."""
        return sum(rows_revealed(reply) for _, reply in self.received)

    def log_of(self, party: str) -> list[dict[str, Any]]:
        """Read what a party's owner finds in its log."""
        return events(self.folder / f"{party}-state" / "log.jsonl")

    def said_to_owner(self, party: str) -> str:
        """Read what the person at a party was told."""
        return (self.folder / f"{party}.said").read_text()

    def delivered_to(self, party: str) -> Floats:
        """Read what a party that joins forces with the server was given."""
        lines = (self.folder / f"{party}-predictions.csv").read_text().splitlines()[1:]
        return np.array([float(line.partition(",")[2]) for line in lines])


class HostileParty:
    """A party's desk that says something else than the honest one behind it; line, identity and order are real."""

    def __init__(self, desk: PartyDesk, lie: Lie) -> None:
        self._desk, self._lie, self._codec = desk, lie, codec()

    def answer(self, ask: Ask) -> Answer:
        answer = self._desk.answer(ask)
        assert answer is not None, "its owner is not asked"
        request, reply = self._codec.decode(ask.payload), self._codec.decode(answer.payload)
        return Answer(ask.run, ask.number, self._codec.encode(self._lie(request, reply)))

    @property
    def open_runs(self) -> tuple[str, ...]:
        return self._desk.open_runs

    def is_waiting(self, run: str) -> bool:
        return self._desk.is_waiting(run)

    def after_sending(self) -> None:
        self._desk.after_sending()

    def end(self, end: RunEnd) -> None:
        self._desk.end(end)

    def give_up(self, reason: str) -> None:
        self._desk.give_up(reason)

    def close(self) -> None:
        self._desk.close()


def turned_away(attack: Callable[[], object], why: str) -> TurnedAwayError:
    """Carry out an attack that must end in a refusal for this reason."""
    with pytest.raises(TurnedAwayError, match=why) as refused:
        attack()
    return refused.value


@contextmanager
def hostile_server(
    folder: Path,
    parties: Sequence[cn.Party],
    policy: Mapping[str, object] | None = None,
    lies: Mapping[str, Lie] | None = None,
    policies: Mapping[str, Mapping[str, object]] | None = None,
    *,
    are_aligned: bool = True,
) -> Iterator[HostileServer]:
    """Wait for parties, each with the [policy] that `policies` has for it, as in party.toml, or else with `policy`.

    Those that `lies` names say something else than an honest party would. Where rows are not aligned, nobody greets.
    """
    names = [party.name for party in parties]
    if not (folder / "certs").exists():
        new_certificates(folder / "certs", names)
    port = free_port()
    endpoint = ServerEndpoint(names, f"127.0.0.1:{port}", tls(folder, "server"), SECONDS, SECONDS, 2.0)
    log = EventLog(None)
    hub = Hub(
        endpoint,
        log.write,
        outcome=lambda _: ("done", ""),
        on_change=lambda: None,
        on_waiting=lambda _: None,
    )
    files = {
        party.name: _party_file(folder, party, port, (policies or {}).get(party.name, policy)) for party in parties
    }
    # msgspec looks at a type when it is first needed, and crashes where two threads do so at a time.
    codec()
    for path in files.values():
        read_party_file(path)
    threads = [_started(path, (lies or {}).get(name)) for name, path in files.items()]
    try:
        hub.wait_for_all()
        yield HostileServer(hub, folder, names, are_aligned=are_aligned)
    finally:
        hub.tell_all(Goodbye("done", "", 0))
        hub.close()
        for thread in threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "the party hangs"


def identity_of(folder: Path, party: str) -> Identity:
    """Read the secret of a party that joins forces with the server."""
    certs = folder / "certs"
    return read_identity(party, IdentityFile(str(certs / f"{party}.identity"), str(certs / "pins.toml")))


def made_parties(n_rows: int = N_ROWS, widths: Sequence[int] = (3, 4, 3), *, label: bool = True) -> list[cn.Party]:
    """Make parties, the last of which holds the label."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(n_rows, sum(widths))) + 7.0
    y = X @ rng.normal(size=sum(widths)) + rng.normal(size=n_rows)
    return cn.split_columns(X, y if label else None, list(widths))


def columns_of(party: cn.Party) -> Floats:
    """Give all that a party holds: its features, and its label last."""
    return party.table.take(np.arange(party.table.n_rows))


def features_of(party: cn.Party) -> Floats:
    """Give a party's features."""
    return np.ascontiguousarray(columns_of(party)[:, : len(party.table.feature_names)])


def one_hot(place: int, size: int) -> Floats:
    """Give a vector of zeros but for a 1."""
    return np.asarray(np.eye(size)[place])


def _party_file(folder: Path, party: cn.Party, port: int, policy: Mapping[str, object] | None) -> Path:
    table = party.table
    data: dict[str, Any] = {"file": f"{party.name}.parquet"}
    raw = getattr(table, "preparing", None)
    names = [] if raw is not None else list(table.feature_names)
    if table.label_name is not None:
        names.append(table.label_name)
        data["label"] = table.label_name
    columns: dict[str, Any] = dict(zip(names, columns_of(party).T, strict=True))
    prepare = None
    if raw is not None:
        columns |= {name: raw.columns[name] for name in raw.names}
        prepare = {"columns": {name: _plain(rule) for name, rule in raw.rules.items()}, "tell_levels": raw.tell_levels}
    if table.weight_column is not None:
        columns["weight"] = table.weight_column
        data["weight"] = "weight"
    if table.split_column is not None:
        columns["split"] = table.split_column
        data["split"] = "split"
    if table.keys is not None:
        columns |= {name: table.keys.columns[name] for name in table.keys.names}
        data["key"] = list(table.keys.names)
    pq.write_table(pa.table(columns), folder / data["file"])
    return write_party_file(folder, party.name, port, data=data, policy=policy or {"level": "usual"}, prepare=prepare)


def _plain(rule: Any) -> dict[str, Any]:
    return {name: value for name, value in msgspec.to_builtins(rule).items() if value is not None}


def _started(path: Path, lie: Lie | None) -> threading.Thread:
    serve = (lambda: _serve_honestly(path)) if lie is None else (lambda: _serve_hostilely(path, lie))
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


def _serve_honestly(path: Path) -> None:
    try:
        with path.with_suffix(".said").open("a", buffering=1) as said:
            serve_party(path, once=True, say=lambda words: print(words, file=said))
    except ColonnadeError as error:
        raise AssertionError(f"{path.stem}: {error}") from error


def _serve_hostilely(path: Path, lie: Lie) -> None:
    file = read_party_file(path)
    with opened_desk(file, lambda _: None) as (desk, log, _revoked):
        GrpcParty(file, HostileParty(desk, lie), log.write, lambda _: None).serve(once=True)
