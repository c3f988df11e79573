"""A party of its own machine: what party.toml says, put together and kept on the line."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from os import PathLike
from pathlib import Path

from colonnade.catalogue import codec, party_session
from colonnade.contracts import Alignment
from colonnade.data.parties import Party
from colonnade.data.streamed_tables import StreamedTable
from colonnade.errors import InputError, UnsupportedError
from colonnade.node.alignment_file import ALIGNMENT, AlignedRows
from colonnade.node.allowance import Allowance
from colonnade.node.approval_words import words_of
from colonnade.node.approvals import ApprovalRules, Approvals, forget_all
from colonnade.node.desk import PartyDesk
from colonnade.node.files import FLARE, PartyFile, read_party_file
from colonnade.node.identity_files import read_identity
from colonnade.node.log import LOG, EventLog
from colonnade.node.memory_file import MEMORY, KeptInFile
from colonnade.node.predictions_file import check_ending, write_predictions
from colonnade.node.preparation_files import PreparationFiles
from colonnade.node.state_folder import StateFolder
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import Memory
from colonnade.protocol.session import Delivery
from colonnade.protocol.sheet import still_signed
from colonnade.storage import check_file
from colonnade.transports.envelopes import Goodbye
from colonnade.transports.revoked import Revoked
from colonnade.transports.terminal import SCREEN, Passes
from colonnade.transports.terminal import say as say_on_stderr

Say = Callable[[str], None]


def serve_party(path: str | PathLike[str], *, once: bool = False, say: Say = say_on_stderr) -> Goodbye | None:
    """Take part with the data of this machine: dial the server, answer what the owner's policy allows, stay.

    It blocks. SIGTERM and Ctrl-C end it, where it runs in the main thread. Runs that are unfinished then are found
    again in the state folder by the next call.

    Parameters
    ----------
    path : path-like
        A party.toml: data, server, certificates, policy.
    once : bool
        Return when the server closes, and raise `PartyUnreachableError` when it stays away; else wait for the next
        server.
    say : callable
        Is told what a person at the party should see; stderr if left out.

    Returns
    -------
    Goodbye or None
        How the server closed: `status` is "done" or "failed", with a `reason` and the server's exit `code`. None if the
        party was stopped here.

    Examples
    --------
    >>> import colonnade as cn
    >>> goodbye = cn.serve_party("bank.toml", once=True)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    colonnade.errors.InputError: Cannot read bank.toml: ... No such file or directory: 'bank.toml'. Pass the path of ...
    """
    file = read_party_file(Path(path))
    if file.server == FLARE:
        raise InputError(f'{path}: FLARE starts a party whose server is "{FLARE}". Submit a job to FLARE.')
    try:
        from colonnade.transports.grpc.party import GrpcParty
    except ImportError as error:
        raise UnsupportedError(f"Other machines need gRPC: {error}. pip install 'colonnade[grpc]'.") from error
    with opened_desk(file, say) as (desk, log, revoked):
        say(f"Dialling {file.server}.")
        line = GrpcParty(file, desk, log.write, say, revoked)
        with _stopped_by_signals(line.stop):
            return line.serve(once=once)


@contextmanager
def opened_desk(file: PartyFile, say: Say) -> Iterator[tuple[PartyDesk, EventLog, Revoked]]:
    """Read a party's data, rebuild the runs it was in the middle of, and hold its state folder."""
    with ExitStack() as closing:
        folder = StateFolder(Path(file.state))
        closing.callback(folder.release)
        if file.predictions is not None:  # that they have no place is said before all of them have come
            check_ending(Path(file.predictions))
            check_file(Path(file.predictions))

        def tell(words: str) -> None:
            say(words)
            log.write("read again", words=words)

        revoked = Revoked(file.revoked, tell)
        identity = read_identity(file.name, file.identity, revoked, tell)
        log = EventLog(folder.path / LOG, identity)
        closing.callback(log.close)
        memory = KeptInFile(folder.path / MEMORY)
        closing.callback(memory.close)
        desk = _desk(file, identity, folder, log, memory, say)
        closing.callback(desk.close)
        yield desk, log, revoked


def _desk(
    file: PartyFile, identity: Identity, folder: StateFolder, log: EventLog, memory: Memory, say: Say
) -> PartyDesk:
    rules, party = file.policy, file.data.party(file.name, file.policy.policy(), identity, file.prepare)
    if isinstance(party.table, StreamedTable) and say == SCREEN.say and SCREEN.is_live:
        party.table = party.table.watched(Passes(SCREEN.count).tell)
    party.table.look_through()  # what is wrong with a value quotes it: its owner is told now, and no server in a job
    say(f"{party!r}. Policy: {rules.level}.")
    for note in party.notes:
        say(f"{note}.")
    if rules.level == "open":
        say(
            "Warning: at level open a server can ask for all rows, unless another rule of [policy] forbids it. "
            "`colonnade policy new` writes a stricter one."
        )
    if party.policy.least_rows > party.table.n_rows:
        say(
            f"Warning: least_rows = {party.policy.least_rows:,} in [policy] is more than the table's "
            f"{party.table.n_rows:,} rows: no sum is ever told. Write a smaller number."
        )
    rows = AlignedRows(folder.path / ALIGNMENT, party.table, identity.parties, say)
    a_day = rules.a_day(rows.table.n_rows)
    allowance = Allowance(folder.path / "spent.json", file.server_name, a_day, rules.requests_a_minute)

    def keep(alignment: Alignment) -> Alignment:
        kept = rows.keep(alignment)
        allowance.limit(rules.a_day(rows.table.n_rows))
        return kept

    return PartyDesk(
        party_session(
            rows.table,
            party.policy,
            party.identity,
            memory,
            rows.problem,
            PreparationFiles(folder.path, say),
        ),
        codec(file.max_message_bytes),
        allowance=allowance,
        folder=folder,
        log=log,
        server=file.server_name,
        max_runs=rules.open_runs,
        approvals=_approvals(file, party, rows, folder, memory, say),
        is_signed=partial(still_signed, identity),
        deliver=lambda delivery: _write_predictions(file, delivery, say),
        keep=keep,
        show=say,
    )


def _approvals(
    file: PartyFile, party: Party, rows: AlignedRows, folder: StateFolder, memory: Memory, say: Say
) -> Approvals | None:
    if file.approve == "always":
        forget_all(folder.path)
        return None
    return Approvals(
        folder.path,
        ApprovalRules(file.approve_within, file.approve_hook),
        file.server_name,
        lambda request, route: words_of(request.read(), route, party.name, rows.table, party.policy, memory),
        say,
    )


def _write_predictions(file: PartyFile, delivery: Delivery, say: Say) -> None:
    if file.predictions is None:
        raise InputError('it names no file for predictions. Add `predictions = "predictions.csv"` to its party.toml.')
    if delivery.problem:
        say(
            f"Predictions were delivered that are good for nothing; {file.predictions} is as it was. {delivery.problem}"
        )
        return
    write_predictions(Path(file.predictions), delivery)
    say(f"{len(delivery.chosen):,} predictions received: {file.predictions}")


@contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGTERM and Ctrl-C stop it; only a process's main thread is told of signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = {
        number: signal.signal(number, lambda _number, _frame: stop()) for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
