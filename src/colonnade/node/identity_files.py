"""Identities in files: a secret, which its owner alone has, and the pins of all parties and of the server.

Who runs the server, or the authority of the certificates, could otherwise put a key of its own between two parties. It
cannot sign for a key that the owners told each other. Pins are public.
"""

import json
import os
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Annotated

import msgspec

from colonnade.errors import InputError
from colonnade.ledger import SERVER
from colonnade.node.files import IdentityFile
from colonnade.node.state_folder import write_private
from colonnade.privacy.identities import PinnedIdentity, pins_of, signing_key
from colonnade.privacy.primitives import KEY_BYTES
from colonnade.storage import MAX_SECRET_BYTES, read_file, read_private
from colonnade.transports.revoked import Revoked

PINS = "pins.toml"
SUFFIX = ".identity"
TWO = msgspec.Meta(min_length=1, max_length=2)


def new_identity(folder: Path, name: str) -> str:
    """Make a secret, NAME.identity, that only its owner can read; give its pin, a line of pins.toml."""
    path = folder / f"{name}{SUFFIX}"
    if path.parent != folder or not name.strip():
        raise InputError(f"An identity cannot be made for {name!r}. Use the party's name, as in federation.toml.")
    if path.exists():
        raise InputError(f"{path} already exists, and others may have pinned it. Remove it first to replace it.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = os.urandom(KEY_BYTES)
    write_private(path, f"{secret.hex()}\n".encode())
    return f"{json.dumps(name)} = {json.dumps(signing_key(secret).hex())}"


def new_identities(folder: Path, names: Iterable[str]) -> None:
    """Make secrets for all parties and the server, and a pins.toml of all: for a trial, by one person."""
    (folder / PINS).write_text("".join(f"{new_identity(folder, name)}\n" for name in (*names, SERVER)))


def read_identity(name: str, file: IdentityFile) -> PinnedIdentity:
    """Read the identity of a party or of the server; the operating system's entropy makes the keys of single runs."""
    secret = _unhexed(_text(file.key, read_private).strip(), file.key)
    pinned = read_pins(file.pins)
    if signing_key(secret) not in pins_of(pinned, name):
        raise InputError(
            f"{file.pins} does not have the pin of {file.key} for {name!r}. Ask all owners to copy it again: "
            "the others would not recognise it."
        )
    if SERVER not in pinned:
        raise InputError(
            f"{file.pins} has no pin of the server, whose signature opens every job. Ask who runs the server for the "
            f"line that `colonnade certs identity --server` printed: {json.dumps(SERVER)} = ..."
        )
    revoked = Revoked(file.revoked)
    if signing_key(secret) in revoked.pins():
        raise InputError(f"The pin of {file.key} is in {file.revoked}. Make a new one: `colonnade certs identity`.")
    return PinnedIdentity(name, secret, pinned, os.urandom, revoked.pins)


def _plain(path: Path) -> bytes:
    return read_file(path.resolve(), MAX_SECRET_BYTES)


def read_pins(path: str | PathLike[str]) -> dict[str, tuple[bytes, ...]]:
    """Read the pins of all parties: one, or the old and the new one of a party whose key is being renewed."""
    try:
        pins = msgspec.toml.decode(_text(path), type=dict[str, str | Annotated[list[str], TWO]])
    except msgspec.MsgspecError as error:
        raise InputError(f'{path}: {error}. Write one line for each party: "bank" = "its pin".') from error
    return {
        party: tuple(_unhexed(pin, path) for pin in ([told] if isinstance(told, str) else told))
        for party, told in pins.items()
    }


def _text(path: str | PathLike[str], read: Callable[[Path], bytes] = _plain) -> str:
    try:
        return read(Path(path)).decode()
    except (OSError, ValueError) as error:
        raise InputError(
            f"Cannot read {path}: {error}. `colonnade certs new` makes identities for a trial, `colonnade certs "
            "identity` one at a time."
        ) from error


def _unhexed(text: str, path: str | PathLike[str]) -> bytes:
    """Read 32 bytes; an error does not quote them, they may be secret."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise InputError(f"{path} has no key of {2 * KEY_BYTES} hexadecimal digits where one belongs. Copy it again.")
    return key
