"""Where scripts are played: a transport, a conductor and a ledger, for parties here or on other machines."""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, Self, TypeVar

import msgspec
import numpy as np

from colonnade.alignment import align, check_mode, n_rounds
from colonnade.alignment.meeting import KeyCard, have_alignment, meet
from colonnade.alignment.records import AlignmentReport
from colonnade.catalogue import codec, party_session
from colonnade.contracts import Model, Roster, Script, Transport
from colonnade.data.parties import Party
from colonnade.errors import ColonnadeError, InputError, UnsupportedError
from colonnade.job_sheets import sheet_of
from colonnade.ledger import SERVER, Ledger
from colonnade.node.desk import NONCE_BYTES
from colonnade.node.files import FLARE, FederationFile, read_federation_file
from colonnade.node.server import NetworkServer
from colonnade.privacy.identities import BesideServer, identities_here
from colonnade.protocol.conductor import Conductor, RoundListener, RoundNumber
from colonnade.protocol.fingerprints import Changed, Tables, key_here, with_table
from colonnade.protocol.hello import hello
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import KeptHere
from colonnade.protocol.preparing import prepare
from colonnade.protocol.run_purpose import RunPurpose
from colonnade.protocol.session import Delivery, PartySession
from colonnade.protocol.sheet import JobSheet, opened
from colonnade.protocol.splits import AnySplit
from colonnade.run import Run, current_versions
from colonnade.tasks import MODELS, AnyTask
from colonnade.tasks.jobs import JobResult
from colonnade.tasks.model_columns import roster_of
from colonnade.transports.carriers import MakeCarrier

T = TypeVar("T")
M = TypeVar("M")
S = TypeVar("S", bound="_OpenChoice | None")
MakeTransport = Callable[[Mapping[str, PartySession]], Transport]
# Gives a script a run of its own, and what carries its rounds; how many there are, where that is known.
OpenRun = Callable[[str, Mapping[str, object], int], AbstractContextManager[Transport]]
Close = Callable[[BaseException | None], None]
Check = Callable[[Tables], None]


class _OpenChoice(Protocol):
    def between_machines(self, n_parties: int) -> Self: ...


class Runtime:
    """Parties that have met; their names are in the order of the model's columns, and `identity` is the server's.

    `open_run` makes the rounds of one script a run: in this process, or one that outlives it. `here` are the parties,
    if they are in this process; `run_by` is the party that is also the server; `close` ends it, for all sides;
    `acknowledge` says that results are kept, and where.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        identity: Identity,
        open_run: OpenRun,
        on_round: RoundListener,
        *,
        align: str = "exact",
        again: bool = False,
        here: "PartiesHere | None" = None,
        run_by: str | None = None,
        close: Close = lambda _error: None,
        acknowledge: Callable[[str | None], None] = lambda _saved: None,
    ) -> None:
        self._open_run = open_run
        self._on_round = on_round
        self.parties = here
        self._codec = codec()
        self._identity = identity
        self.close, self.acknowledge = close, acknowledge
        self.ledger = Ledger(run_by=run_by)
        cards = {} if align == "exact" else self._aligned(names, align, again=again)
        self.roster, _ = self._play(hello(names), "hello", {"parties": names})
        self.alignment = AlignmentReport.of(align, cards, self.roster.n_rows) if cards else None
        if self.alignment is not None:
            self.roster = replace(self.roster, alignment=self.alignment.fingerprint)
        # Whether parties have columns to prepare: `roster` then has them as they came, until a job prepares them.
        self.prepares = any(card.prepared is not None for card in self.roster.cards)
        self.unprepared, self._prepared = self.roster, dict[AnySplit | None, tuple[Roster, Ledger]]()
        # What parties were asked and told so that their columns are as the roster has them now.
        self.preparation = Ledger(run_by=run_by)

    @classmethod
    def here(
        cls,
        parties: list[Party],
        transport: MakeTransport,
        on_round: RoundListener,
        align: str = "exact",
    ) -> "Runtime":
        """Let parties of this process meet, each known to the others by its identity."""
        check_mode(align)
        who, server = identities_of(parties)
        sessions = {each.name: _session_here(each, who[each.name]) for each in parties}
        here = PartiesHere(sessions, transport)
        return cls(tuple(sessions), server, here.run, on_round, align=align, here=here)

    @classmethod
    def connected(cls, path: str | PathLike[str], on_round: RoundListener, *, again: bool = False) -> "Runtime":
        """Be the server of federation.toml: listen, wait for the parties, and let them meet."""
        file = read_federation_file(Path(path))
        check_mode(file.align.mode, file.run_by)
        server = NetworkServer(file, _carrier(file))

        def close(error: BaseException | None) -> None:
            code = error.exit_code if isinstance(error, ColonnadeError) else int(error is not None)
            server.close("failed" if error else "done", str(error or ""), code)

        try:
            server.wait_for_all()
            return cls(
                tuple(server.file.parties),
                server.identity,
                lambda verb, what, rounds: server.run(purpose_of(verb, what), rounds),
                on_round,
                align=server.file.align.mode,
                again=again,
                run_by=server.file.run_by,
                close=close,
                acknowledge=server.forget_done,
            )
        except BaseException as error:
            close(error)
            raise

    def _aligned(self, names: tuple[str, ...], mode: str, *, again: bool) -> dict[str, KeyCard]:
        """See that the parties' records are matched: as they were before, or anew where they were not, or are to be."""
        cards, _ = self._play(meet(names, again=again), "hello", {"parties": names, "again": again})
        if again or not have_alignment(cards, mode):
            parties = tuple(card.party for card in cards.values())
            sheet = JobSheet(verb="align", parties=parties, rows=0, run_by=self.ledger.run_by, align=mode)
            what = {"align": mode, "cards": [(card.n_keys, card.alignment) for card in cards.values()]}
            script, total = opened(sheet, self._identity, align(mode, cards)), n_rounds(mode, cards)
            (cards, _), _ = self._play(script, "align", what, total)
            # The parties keep it: a journal that gave the same replies again would align nobody.
            self.acknowledge(None)
        return cards

    def prepare(self, task: object, split: AnySplit | None) -> None:
        """Let parties prepare their columns for jobs that hold out these rows, once; the roster then has them so.

        What is no task, or no split, is left to those who look at the job.
        """
        if not self.prepares or not isinstance(task, AnyTask) or not isinstance(split, AnySplit | None):
            return
        self.roster = self.unprepared
        if split not in self._prepared:
            self._prepared[split] = self.play(prepare(self.roster, split), "prepare", task=task, split=split)
        self.roster, self.preparation = self._prepared[split]

    def prepare_as(self, model: Model[Any] | None) -> None:
        """Go by the columns as they were prepared for a model: no party is asked, each keeps how it did that."""
        learned_from: Tables | None = getattr(model, "learned_from_", None)
        if not self.prepares and (learned_from is None or not learned_from.prepared):
            return
        if isinstance(model, MODELS):
            self.roster = roster_of(model, self.unprepared)
        if self.parties is not None and learned_from is not None:
            self.parties.bring(learned_from)

    def play(self, script: Script[T], verb: str, check: Check | None = None, /, **what: object) -> tuple[T, Ledger]:
        """Play a script as one run, opened by its job sheet, and give its result and its part of the ledger.

        Verb and options say what it does: together they are the same only for the same requests. `check` raises where
        it may not be done on such tables; those that it was done on are `tables` afterwards.
        """
        whole = opened(self._sheet(verb, what), self._identity, script, check)
        try:
            (result, tables), sent = self._play(whole, verb, what)
        except ColonnadeError:
            self._prepared.clear()  # a party may have lost how it prepared its columns
            raise
        self.tables = tables if self.parties is None or not self.prepares else self.parties.with_preparations(tables)
        return result, sent

    def play_on(
        self, learned_from: Tables | None, changed: Changed, script: Script[T], verb: str, /, **what: object
    ) -> tuple[T, Ledger]:
        """Play a script that applies a model: on tables that have not changed, unless asked for; it says which."""
        if changed not in ("refuse", "allow"):
            raise InputError(f"changed must be 'refuse' or 'allow', got {changed!r}. Leave it out, or pass 'allow'.")
        check = learned_from.require_unchanged if changed == "refuse" and learned_from is not None else None
        found, sent = self.play(script, verb, check, **what)
        return with_table(found, learned_from, self.tables), sent

    def _sheet(self, verb: str, what: Mapping[str, object]) -> JobSheet:
        return sheet_of(verb, what, self.roster, self.ledger.run_by)

    def _play(self, script: Script[T], verb: str, what: Mapping[str, object], total: int = 0) -> tuple[T, Ledger]:
        position, tell = len(self.ledger), self._on_round
        on_round = (lambda phase, number: tell(phase, RoundNumber.of(number, total))) if total else tell
        try:
            with self._open_run(verb, what, total) as transport:
                result = Conductor(transport, self._codec, self.ledger, on_round).play(script)
        finally:
            self.sent = self.ledger.since(position)
        return result, self.sent

    @property
    def between_machines(self) -> bool:
        """Whether what is sent leaves this process."""
        return self.parties is None

    def settled(self, choice: S) -> S:
        """Decide what a sampler or a solver leaves open, if there is one."""
        if choice is None or self.parties is not None:
            return choice
        return choice.between_machines(len(self.roster.cards))

    def learn(
        self, verb: str, script: Script[JobResult[M]], what: dict[str, Any], check: Check | None = None
    ) -> Run[M]:
        """Play a script that learns, on tables that pass a check, and make a run of what came of it."""
        started = perf_counter()
        learned, ledger = self.play(script, verb, check, **what)
        if self.prepares:
            ledger = Ledger([*self.preparation, *ledger], run_by=ledger.run_by)
        evidence = learned.coreset.evidence
        if evidence is not None and what["sampler"] is not None:  # not of a coreset that was made before
            evidence = msgspec.structs.replace(evidence, sheet=msgspec.msgpack.encode(self._sheet(verb, what)))
            learned = replace(learned, coreset=replace(learned.coreset, evidence=evidence))
        if self.roster.alignment not in (None, learned.coreset.alignment):
            learned = replace(learned, coreset=replace(learned.coreset, alignment=self.roster.alignment))
        sampler, solver = learned.chosen or (what["sampler"], what.get("solver"))
        if isinstance(learned.model, msgspec.Struct) and hasattr(learned.model, "learned_from_"):
            msgspec.structs.force_setattr(learned.model, "learned_from_", self.tables)  # nobody else has it yet
        return Run(
            task=what["task"],
            sampler=sampler,
            solver=solver,
            split=what["split"],
            seed=what["seed"],
            roster=self.roster,
            coreset=learned.coreset,
            model=learned.model,
            facts=dict(learned.facts),
            ledger=ledger,
            seconds=perf_counter() - started,
            versions=current_versions(),
            precision=learned.precision,
            tables=self.tables,
            why=learned.why,
            errors=learned.errors,
        )

    def received(self, party: str) -> Delivery | None:
        """Show what was delivered to a party of this process."""
        if self.parties is None:
            raise UnsupportedError(
                f"Party {party!r} is on its own machine, and so is what was delivered to it: in the file that "
                "`predictions` in its party.toml names."
            )
        delivery = self.parties.received.get(party)
        if delivery is not None and delivery.problem:
            raise InputError(delivery.problem)
        return delivery


def _session_here(party: Party, identity: Identity | None) -> PartySession:
    return party_session(party.table, party.policy, identity, KeptHere([key_here(party.name)]))


def identities_of(parties: Iterable[Party]) -> tuple[dict[str, Identity | None], Identity]:
    """Give each party its owner's identity, and the server one; where no owner gave any, new ones that know it."""
    given = {party.name: party.identity for party in parties}
    here = identities_here(given, os.urandom)
    server = here[SERVER]
    if not any(given.values()):
        return {name: here[name] for name in given}, server
    return {name: each and BesideServer(each, server) for name, each in given.items()}, server


class PartiesHere:
    """Parties of this process: each run gets sessions like these, on data that stay, and a transport of its own."""

    def __init__(self, parties: Mapping[str, PartySession], transport: MakeTransport) -> None:
        self.transport = transport
        self.received: dict[str, Delivery] = {}
        self._parties = dict(parties)

    def bring(self, learned_from: Tables) -> None:
        """Give parties what a model has kept of how they prepared their columns."""
        for name, fitted in learned_from.preparations.items():
            if name in self._parties:
                self._parties[name].bring(learned_from.prepared.get(name, ""), fitted.encode())

    def with_preparations(self, tables: Tables) -> Tables:
        """Let a model keep how its columns were prepared: here is no other place for it."""
        found = {name: self._parties[name].preparations.find(each) for name, each in tables.prepared.items()}
        kept = {name: fitted.decode() for name, fitted in found.items() if fitted is not None}
        return msgspec.structs.replace(tables, preparations=kept)

    def sessions(self) -> dict[str, PartySession]:
        """Open a session at every party."""
        return {name: party.greeted(os.urandom(NONCE_BYTES)) for name, party in self._parties.items()}

    @contextmanager
    def run(self, _verb: str, _what: Mapping[str, object], _rounds: int = 0) -> Iterator[Transport]:
        """Open a session at every party, and keep what was delivered there."""
        sessions = self.sessions()
        try:
            yield self.transport(sessions)
        finally:
            for name, session in sessions.items():
                if session.state.aligned is not None:
                    self._parties[name] = self._parties[name].aligned(session.state.aligned)
            delivered = {name: session.state.received for name, session in sessions.items()}
            self.received.update((name, each) for name, each in delivered.items() if each is not None)


def purpose_of(verb: str, what: Mapping[str, object]) -> RunPurpose:
    """Give a script's purpose, by all that decides its requests and its result but the data: task, seed, model, ..."""
    words = {name: _tag(what.get(name)) for name in ("task", "sampler", "solver")}
    encoded = msgspec.msgpack.encode((verb, sorted(what.items())), enc_hook=_plain)
    return RunPurpose(verb, **words, fingerprint=hashlib.sha256(encoded).hexdigest())


def _tag(value: Any) -> str | None:
    return str(value.__struct_config__.tag) if isinstance(value, msgspec.Struct) else None


def _plain(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    return value.item()  # a number of NumPy's


def _carrier(file: FederationFile) -> MakeCarrier:
    """Choose what brings rounds to the parties."""
    over_flare = file.listen == FLARE
    try:
        if over_flare:
            from colonnade.transports.flare import FlareCarrier

            return FlareCarrier
        from colonnade.transports.grpc.hub import Hub

        return Hub
    except ImportError as error:
        what, extra = ("NVIDIA FLARE", "flare") if over_flare else ("gRPC", "grpc")
        raise UnsupportedError(
            f"Parties on other machines need {what}: {error}. Run pip install 'colonnade[{extra}]'."
        ) from error
