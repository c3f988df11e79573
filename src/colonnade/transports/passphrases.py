"""Passphrases of encrypted keys: from the environment or from a file, and kept nowhere."""

import os
from pathlib import Path
from typing import Protocol

from colonnade.errors import InputError
from colonnade.storage import read_private

ENCRYPTED = b"ENCRYPTED"  # in the first line of a key that is, in PEM


class HasPassphrase(Protocol):
    """What a table of a file says of a key's passphrase."""

    @property
    def passphrase_env(self) -> str | None:
        """The environment variable that has it."""

    @property
    def passphrase_file(self) -> str | None:
        """Or the file that has it."""


def passphrase(named: HasPassphrase, table: str) -> bytes | None:
    """Look it up where a table says; None if it says nothing."""
    if named.passphrase_env is not None and named.passphrase_file is not None:
        raise InputError(f"{table} names a passphrase_env and a passphrase_file. Leave out one of them.")
    if named.passphrase_env is not None:
        found = os.environ.get(named.passphrase_env, "").encode()
        if not found:
            raise InputError(
                f"{table} names the environment variable {named.passphrase_env}, which is not set. Set it."
            )
        return found
    if named.passphrase_file is None:
        return None
    try:
        found = read_private(Path(named.passphrase_file)).rstrip(b"\r\n")
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the passphrase_file of {table}: {error}. Correct that.") from error
    if not found:
        raise InputError(f"The passphrase_file of {table} is empty. Write the passphrase into it.")
    return found


def needed_passphrase(named: HasPassphrase, table: str, key: str) -> bytes:
    """Look it up for a key that is encrypted."""
    found = passphrase(named, table)
    if found is None:
        raise InputError(f"{key} is encrypted. Name its passphrase_env or passphrase_file in {table}.")
    return found


def wrong_passphrase(key: str) -> InputError:
    """Say that it does not fit, without quoting it."""
    return InputError(f"The passphrase of {key} is wrong, or the file is damaged. Check both.")
