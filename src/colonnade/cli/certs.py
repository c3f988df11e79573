"""`colonnade certs`: certificates, and identities by which server and parties know each other."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_json
from colonnade.errors import InputError, UnsupportedError
from colonnade.ledger import SERVER
from colonnade.node.files import IdentityFile
from colonnade.node.identity_files import PINS, new_identity, read_pins
from colonnade.privacy.primitives import check_available
from colonnade.transports.passphrases import passphrase

if TYPE_CHECKING:
    from colonnade.transports.grpc.certified import Certified

app = typer.Typer(help="Certificates for a trial, and identities of parties and server.", no_args_is_help=True)


@app.callback()
def certs() -> None:
    """Certificates for a trial, if you have no authority of your own; and identities of parties and server."""


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
    """Make a private authority, and a certificate and an identity for the server and for each party.

    The server's identity is server.identity, whatever its certificate's name is; pins.toml has everybody's pins.

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
        "Give the server and each party ca.pem, pins.toml, revoked.toml, and its own .pem, .key and .identity, and "
        "nothing else. Keep ca.key: it makes new members."
    )


@app.command("identity")
def identity(
    folder: Annotated[Path, typer.Argument(help="Where NAME.identity is written.", metavar="FOLDER")],
    party: Annotated[str | None, typer.Option("--party", help="The party's name, as in federation.toml.")] = None,
    server: Annotated[bool, typer.Option("--server", help="Make the server's, in place of a party's.")] = False,
    passphrase_env: Annotated[
        str | None, typer.Option("--passphrase-env", help="Encrypt it: the environment variable with its passphrase.")
    ] = None,
    passphrase_file: Annotated[
        str | None, typer.Option("--passphrase-file", help="Encrypt it: the file with its passphrase.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make the identity of one party, or of the server, and print its pin: a line for everybody's pins.toml.

    Example: colonnade certs identity certs --party bank
    """
    if (party is None) != server:
        raise InputError("An identity is a party's or the server's. Pass --party NAME, or --server.")
    if party == SERVER:
        raise InputError(f"A party cannot be called {SERVER!r}. Pass --server for the server's identity.")
    check_available()
    name = party or SERVER
    where = IdentityFile("", "", passphrase_env, passphrase_file)
    pin = new_identity(folder, name, passphrase(where, "The command"))
    if json:
        show_json({"party": name, "pin": pin.rpartition(" = ")[2].strip('"')})
        return
    show(pin)
    say("Send that line to all other owners over a channel that can be trusted. Keep the file secret.")


@app.command("renew")
def renew(
    folder: Annotated[Path, typer.Argument(help="The folder with ca.pem, ca.key and NAME.pem.", metavar="FOLDER")],
    name: Annotated[str, typer.Argument(help="Whose certificate: a party's name, or the server's.", metavar="NAME")],
    days: Annotated[int, typer.Option("--days", min=1, help="For how many days it is valid.")] = 90,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make a new key, too: NAME.key is replaced.")] = False,
    json: JsonFlag = False,
) -> None:
    """Let the authority of `certs new` sign a member's certificate again; NAME.pem is replaced. Nothing is stopped.

    Example: colonnade certs renew certs bank
    """
    check_available()
    from colonnade.node.certificates import renew_certificate

    path = renew_certificate(folder, name, days, new_key=new_key)
    if json:
        show_json({"certificate": str(path), "key": str(path.with_suffix(".key")) if new_key else None})
        return
    show(str(path))
    if new_key:
        show(str(path.with_suffix(".key")))
    say(f"Give {name} what was written. It counts from its next connection on; the old certificate until it expires.")


@app.command("show")
def show_certificates(
    folder: Annotated[Path, typer.Argument(help="A folder with .pem files and pins.toml.", metavar="FOLDER")],
    json: JsonFlag = False,
) -> None:
    """Show names, serials and last days of certificates, and pins: what revoked.toml can list.

    Example: colonnade certs show certs
    """
    check_available()
    found = {path.name: _certificates(path) for path in sorted(folder.glob("*.pem"))}
    pins = read_pins(folder / PINS) if (folder / PINS).exists() else {}
    if not found and not pins:
        raise InputError(f"{folder} has no .pem file and no {PINS}. Name the folder that has certificates or pins.")
    now = datetime.now(UTC)
    lines: list[dict[str, str | list[str] | None]] = [
        {
            "file": name,
            "names": sorted(each.names),
            "serial": f"{each.serial:x}",
            "ends": f"{each.ends:%Y-%m-%d}",
            "note": each.problem(now) or each.warning(now),
        }
        for name, certificates in found.items()
        for each in certificates
    ]
    if json:
        show_json({"certificates": lines, "pins": {name: [pin.hex() for pin in each] for name, each in pins.items()}})
        return
    for line in lines:
        until = f"{line['note']}." if line["note"] else f"until {line['ends']}"
        show(f"{line['file']}: {', '.join(line['names'] or [])}, serial {line['serial']}, {until}")
    for name, each in pins.items():
        show(f"pin of {name}: {', or '.join(pin.hex() for pin in each)}")


def _certificates(path: Path) -> "list[Certified]":
    from cryptography import x509

    from colonnade.transports.grpc.certified import Certified

    try:
        return [Certified.of(each) for each in x509.load_pem_x509_certificates(path.read_bytes())]
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no certificate in PEM. Name a folder of certificates.") from error
