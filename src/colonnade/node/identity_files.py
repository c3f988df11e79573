"""Identities in files: a secret, which its owner alone has, and the pins of all parties and of the server.

Who runs the server, or the authority of the certificates, could otherwise put a key of its own between two parties. It
cannot sign for a key that the owners told each other. Pins are public.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec

from colonnade.errors import InputError
from colonnade.ledger import SERVER
from colonnade.node.files import IdentityFile
from colonnade.node.state_folder import write_private
from colonnade.privacy.identities import PinnedIdentity, decrypted, encrypted, signing_key
from colonnade.privacy.primitives import KEY_BYTES
from colonnade.storage import MAX_SECRET_BYTES, read_file, read_private
from colonnade.transports.passphrases import ENCRYPTED, needed_passphrase, wrong_passphrase
from colonnade.transports.reread import Reread, Tell
from colonnade.transports.revoked import Revoked

PINS = "pins.toml"
SUFFIX = ".identity"
# While a key is changed: the old one and the new one.
MOST_PINS = 2
NONE_REVOKED = Revoked()
FilePins: TypeAlias = dict[str, tuple[bytes, ...]]


def new_identity(folder: Path, name: str, passphrase: bytes | None = None) -> str:
    """Make a secret, NAME.identity, that only its owner can read, encrypted if told how; give its pin for pins.toml."""
    path = folder / f"{name}{SUFFIX}"
    if path.parent != folder or not name.strip():
        raise InputError(f"An identity cannot be made for {name!r}. Use the party's name, as in federation.toml.")
    if path.exists():
        raise InputError(f"{path} already exists, and others may have pinned it. Name another folder for a new one.")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = os.urandom(KEY_BYTES)
    write_private(path, f"{secret.hex()}\n".encode() if passphrase is None else encrypted(secret, passphrase))
    return f"{json.dumps(name)} = {json.dumps(signing_key(secret).hex())}"


def new_identities(folder: Path, names: Iterable[str]) -> None:
    """Make secrets for all parties and the server, and a pins.toml of all: for a trial, by one person."""
    (folder / PINS).write_text("".join(f"{new_identity(folder, name)}\n" for name in (*names, SERVER)))


def read_identity(
    name: str, file: IdentityFile, revoked: Revoked = NONE_REVOKED, tell: Tell = lambda _: None
) -> PinnedIdentity:
    """Read the identity of a party or of the server; the operating system's entropy makes the keys of single runs.

    Pins are read again while it is used, and those that are revoked do not count.
    """
    secret = _secret(file)
    own = signing_key(secret)
    pinned = read_pins(file.pins, most=MOST_PINS)
    if own not in pinned.get(name, ()):
        raise InputError(
            f"{file.pins} does not have the pin of {file.key} for {name!r}. Ask all owners to copy it again: "
            "the others would not recognise it."
        )
    if SERVER not in pinned:
        raise InputError(
            f"{file.pins} has no pin of the server, whose signature opens every job. Ask who runs the server for the "
            f"line that `colonnade certs identity --server` printed: {json.dumps(SERVER)} = ..."
        )
    if own in revoked.pins():
        raise InputError(
            f"The pin of {file.key} is revoked in this end's own list. Make a new identity: `colonnade certs identity`."
        )

    def understood(content: bytes, before: FilePins | None) -> FilePins:
        found = _understood(content, MOST_PINS)
        if before is not None and set(found) != set(before):
            raise ValueError(f"it has {', '.join(sorted(found)) or 'nobody'}, where {', '.join(sorted(before))} were")
        if before is not None and own not in found[name]:
            raise ValueError(f"the pin of {name} that this process signs with is not in it")
        return found

    file_now = Reread(Path(file.pins), understood, tell, "Correct it, or start this end again.")

    def counted() -> FilePins:
        gone, found = revoked.pins(), file_now.now()
        # Asked for with every request, by each of many parties that have each other's pins.
        return {each: tuple(pin for pin in pins if pin not in gone) for each, pins in found.items()} if gone else found

    return PinnedIdentity(name, secret, pinned, os.urandom, counted)


def _secret(file: IdentityFile) -> bytes:
    text = _text(file.key, read_private).strip()
    if ENCRYPTED not in text.encode():
        return _unhexed(text, file.key)
    found = decrypted(text.encode(), needed_passphrase(file, "[identity]", file.key))
    if found is None:
        raise wrong_passphrase(file.key)
    return found


def _plain(path: Path) -> bytes:
    return read_file(path.resolve(), MAX_SECRET_BYTES)


def read_pins(path: str | PathLike[str], most: int | None = None) -> FilePins:
    """Read the pins of all parties; of each so many at most, where they are to sign by.

    Evidence and logs are checked by any number of them: what was signed under an old one stays signed.
    """
    try:
        return _understood(_text(path).encode(), most)
    except ValueError as error:
        raise InputError(f'{path}: {error}. Write one line for each party: "bank" = "its pin".') from error


def _understood(content: bytes, most: int | None) -> FilePins:
    """Read one pin of each, or a list: the old and the new one of a party whose key is being changed."""
    told = msgspec.toml.decode(content, type=dict[str, str | Annotated[list[str], msgspec.Meta(min_length=1)]])
    pins = {name: tuple(map(_pin, [each] if isinstance(each, str) else each)) for name, each in told.items()}
    for name, each in pins.items():
        if most is not None and len(each) > most:
            raise ValueError(f"{name!r} has {len(each)} pins, and {most} are the most: the old one and the new one")
    twice = [pin for pin, count in Counter(chain.from_iterable(pins.values())).items() if count > 1]
    if twice:
        raise ValueError(f"the pin {twice[0].hex()[:16]}... stands there twice, and must be of one party only")
    return pins


def _pin(text: str) -> bytes:
    try:
        pin = bytes.fromhex(text)
    except ValueError:
        pin = b""
    if len(pin) != KEY_BYTES:
        raise ValueError(f"it has no key of {2 * KEY_BYTES} hexadecimal digits where one belongs")
    return pin


def _text(path: str | PathLike[str], read: Callable[[Path], bytes] = _plain) -> str:
    try:
        return read(Path(path)).decode()
    except (OSError, ValueError) as error:
        raise InputError(
            f"Cannot read {path}: {error}. `colonnade certs new` makes identities for a trial, `colonnade certs "
            "identity` one at a time."
        ) from error


def _unhexed(text: str, path: str | PathLike[str]) -> bytes:
    """Read a secret; an error does not quote it."""
    try:
        return _pin(text)
    except ValueError as error:
        raise InputError(f"{path}: {error}. Copy it again.") from None
