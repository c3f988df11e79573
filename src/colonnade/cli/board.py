"""`colonnade board`."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from colonnade.cli.console import JsonFlag, say, show_json
from colonnade.errors import InputError, UnsupportedError

TomlFile = Annotated[
    Path, typer.Argument(help="A server's federation.toml, or a party.toml.", metavar="FEDERATION.toml|PARTY.toml")
]


def command(
    file: TomlFile,
    listen: Annotated[
        str, typer.Option("--listen", help="Address and port; without TLS only of this machine.")
    ] = "127.0.0.1:8143",
    tls_certificate: Annotated[Path | None, typer.Option("--tls-certificate", help="PEM file, to use TLS.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", help="PEM file of its private key.")] = None,
    name: Annotated[
        list[str] | None, typer.Option("--name", help="A name by which browsers may call it, as in its certificate.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show a server or a party live in a browser: who is there, what runs, what waits, and what you may decide.

    Run it where the server or the party runs, as the same user. It prints a token once, with which you log in. It only
    reads the state folder and writes small files there: stop it whenever you like, no run waits for it.

    Example: colonnade board federation.toml
    """
    try:
        from colonnade.board.door import Door, new_token
        from colonnade.board.serving import Tls, check_address, listening
    except ImportError as error:
        raise UnsupportedError(
            f"The board needs more packages: {error}. Run pip install 'colonnade[board]'."
        ) from error
    tls, token = Tls(tls_certificate, tls_key), new_token()
    check_address(listen, tls)

    with listening(_board(file), Door(token), listen, tls, name or []) as (place, answer, _):
        if json:
            show_json({"url": place.url(), "token": token})
        else:
            say(f"The board is at {place.url()}\nIts token, which is shown only now: {token}")
        answer()


def _board(file: Path) -> Any:
    """Make the board of whatever the file is of."""
    from colonnade.board.party_board import PartyBoard
    from colonnade.board.server_board import ServerBoard

    try:
        names = msgspec.toml.decode(file.read_bytes(), type=dict[str, Any])
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {file}: {error}. Pass a federation.toml or a party.toml.") from error
    return ServerBoard(file) if "parties" in names else PartyBoard(file)
