"""`colonnade certs`."""

from pathlib import Path
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.errors import UnsupportedError

app = typer.Typer(help="Certificates for a trial.", no_args_is_help=True)


@app.callback()
def certs() -> None:
    """Certificates for a trial; organisations with an authority of their own use that."""


@app.command("new")
def new(
    folder: Annotated[Path, typer.Argument(help="A new folder.", metavar="FOLDER")],
    party: Annotated[list[str], typer.Option("--party", help="A party's name, as in federation.toml; repeat it.")],
    server: Annotated[str, typer.Option("--server", help="The server's name, as in party.toml.")] = "server",
    days: Annotated[int, typer.Option("--days", min=1, help="How long they are valid.")] = 90,
    json: JsonFlag = False,
) -> None:
    """Make a private authority, and a certificate and key for the server and each party.

    Example: colonnade certs new certs --party bank --party telephone --party shop
    """
    try:
        from colonnade.transports.certificates import new_certificates
    except ImportError as error:
        raise UnsupportedError(f"Certificates need cryptography: {error}. pip install 'colonnade[grpc]'.") from error
    made = new_certificates(folder, party, server=server, days=days)
    if json:
        show_json({"certificates": [str(path) for path in made]})
        return
    show("\n".join(str(path) for path in made))
    say("Give each party ca.pem, its own .pem and its own .key, and nothing else. Keep ca.key: it makes new members.")
