"""`colonnade party`."""

import signal
from pathlib import Path
from typing import Annotated

import typer

from colonnade.catalogue import codec, party_session
from colonnade.cli.console import JsonFlag, say, show_json
from colonnade.data.parties import Party
from colonnade.errors import InputError, UnsupportedError
from colonnade.node.allowance import Allowance
from colonnade.node.desk import PartyDesk
from colonnade.node.files import FLARE, PartyFile, read_party_file
from colonnade.node.identity_files import read_identity
from colonnade.node.log import EventLog
from colonnade.node.state_folder import StateFolder, write_private
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import Delivery

LOG = "log.jsonl"

PartyToml = Annotated[
    Path, typer.Argument(help="TOML file with data, server, certificates, policy.", metavar="PARTY.toml")
]
OnceFlag = Annotated[
    bool,
    typer.Option("--once", help="End when the server closes, with its exit code; give up when it stays away."),
]


def command(party_file: PartyToml, once: OnceFlag = False, json: JsonFlag = False) -> None:
    """Take part with this organisation's data: dial the server, answer what the owner's policy allows, stay.

    What was asked, by whom, and whether it was answered is in log.jsonl in the state folder.

    Example: colonnade party bank.toml
    """
    file = read_party_file(party_file)
    folder = StateFolder(Path(file.state))
    log = EventLog(folder.path / LOG)
    if file.server == FLARE:
        raise InputError(f'{party_file}: FLARE starts a party whose server is "{FLARE}". Submit a job to FLARE.')
    desk = desk_of(file, folder, log)
    say(f"Dialling {file.server}.")
    try:
        from colonnade.transports.grpc.party import GrpcParty
    except ImportError as error:
        raise UnsupportedError(f"Other machines need gRPC: {error}. pip install 'colonnade[grpc]'.") from error
    line = GrpcParty(file, desk, log.write, say)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: line.stop())
    goodbye = line.serve(once=once)
    desk.close()
    log.close()
    if json:
        show_json({"status": goodbye.status, "reason": goodbye.reason} if goodbye else {"status": "stopped"})
    if goodbye is not None and goodbye.code:
        raise typer.Exit(goodbye.code)


def _party(file: PartyFile) -> Party:
    rules, data = file.policy, file.data
    policy = Policy(
        rules.never,
        phases=rules.phases,
        solvers=rules.solvers,
        tasks=rules.tasks,
        rows_a_request=rules.rows_a_request,
    )
    return Party(
        file.name,
        data.file,
        label=data.label,
        key=data.key,
        weight=data.weight,
        split=data.split,
        policy=policy,
        identity=None if file.identity is None else read_identity(file.name, file.identity),
    )


def desk_of(file: PartyFile, folder: StateFolder, log: EventLog) -> PartyDesk:
    """Open a party's desk: read its data, and rebuild the runs it was in the middle of."""
    rules, party = file.policy, _party(file)
    say(f"{party!r}.")
    return PartyDesk(
        party_session(party.table, party.policy, party.identity),
        codec(file.max_message_bytes),
        policy=party.policy,
        allowance=Allowance(folder.path / "spent.json", rules.rows_a_day, rules.requests_a_minute),
        folder=folder,
        log=log,
        server=file.server_name,
        max_runs=rules.open_runs,
        deliver=lambda delivery: _write_predictions(file, delivery),
        show=say,
    )


def _write_predictions(file: PartyFile, delivery: Delivery) -> None:
    if file.predictions is None:
        raise InputError('it names no file for predictions. Add `predictions = "predictions.csv"` to its party.toml.')
    pairs = zip(delivery.rows.tolist(), delivery.predictions.tolist(), strict=True)
    lines = ["row,prediction", *(f"{row},{value}" for row, value in pairs)]
    write_private(Path(file.predictions), ("\n".join(lines) + "\n").encode())
    say(f"{len(delivery.rows):,} predictions received: {file.predictions}")
