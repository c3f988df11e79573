"""`colonnade certs`: certificates, and identities for secure sums."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.errors import UnsupportedError
from colonnade.node.identity_files import PINS, new_identity
from colonnade.privacy.primitives import check_available

app = typer.Typer(help="Certificates for a trial, and identities for secure sums.", no_args_is_help=True)


@app.callback()
def certs() -> None:
    """Certificates for a trial, if you have no authority of your own; and identities for secure sums."""


@app.command("new")
def new(
    folder: Annotated[Path, typer.Argument(help="A new folder to write to.", metavar="FOLDER")],
    party: Annotated[
        list[str], typer.Option("--party", help="A party's name, as in federation.toml; once for each party.")
    ],
    server: Annotated[str, typer.Option("--server", help="The server's name, as in party.toml.")] = "server",
    days: Annotated[int, typer.Option("--days", min=1, help="For how many days they are valid.")] = 90,
    json: JsonFlag = False,
) -> None:
    """Make a private authority, a certificate for the server, and a certificate and an identity for each party.

    Example: colonnade certs new certs --party bank --party telephone --party shop
    """
    try:
        from colonnade.node.certificates import new_certificates
    except ImportError as error:
        raise UnsupportedError(
            f"Certificates need cryptography: {error}. Run pip install 'colonnade[grpc]'."
        ) from error
    made = new_certificates(folder, party, server=server, days=days)
    if json:
        show_json({"certificates": [str(path) for path in made], "pins": str(folder / PINS)})
        return
    show("\n".join(str(path) for path in [*made, folder / PINS]))
    say(
        "Give each party ca.pem, pins.toml, and its own .pem, .key and .identity, and nothing else. "
        "Keep ca.key: it makes new members."
    )


@app.command("identity")
def identity(
    folder: Annotated[Path, typer.Argument(help="Where NAME.identity is written.", metavar="FOLDER")],
    party: Annotated[str, typer.Option("--party", help="The party's name, as in federation.toml.")],
    json: JsonFlag = False,
) -> None:
    """Make this party's identity for secure sums, and print its pin: a line for the pins.toml of every party.

    Example: colonnade certs identity certs --party bank
    """
    check_available()
    pin = new_identity(folder, party)
    if json:
        show_json({"party": party, "pin": pin.rpartition(" = ")[2].strip('"')})
        return
    show(pin)
    say("Send that line to the owners of the other parties over a channel that can be trusted. Keep the file secret.")
