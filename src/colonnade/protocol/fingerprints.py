"""The fingerprint of a party's table: the same as long as names and values are, and it tells nothing of them.

It is keyed with a secret that the party keeps with what it remembers, so that nobody can try values until one fits, and
so that it outlives restarts and new identities. It begins with a name of that key: under another key nobody can tell
whether a table changed. In one process, where nobody is to be feared, the key follows from the party's name: what was
saved is recognised by the next process.

Values are added up by multipliers that follow from the key, four times faster than they are hashed, and the sums are
hashed: whoever brings rows, and does not know the key, cannot make others of the same fingerprint.
"""

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.contracts import Table
from colonnade.errors import AlignmentError
from colonnade.kernels.blocks import BLOCK_ROWS, Block
from colonnade.protocol.memory import TableKey
from colonnade.protocol.session import PartyData
from colonnade.signing import digest

FINGERPRINT_BYTES = 16
# Of these, so many name the key.
KEY_NAME_BYTES = 4
# Added up in one call, during which other threads go on; more do not stay in the cache.
COLUMNS_AT_ONCE = 8
Seen = Literal["same", "changed", "aligned again", "new rows"]
Changed = Literal["refuse", "allow"]
R = TypeVar("R")


class Tables(msgspec.Struct, frozen=True):
    """On which tables a job was done.

    Parameters
    ----------
    rows : int
        How many rows each has.
    fingerprints : dict of str to str
        Of each party's table, in hexadecimal: the first 8 digits name the party's key, the rest change with its data.
    alignment : str or None
        The fingerprint of the alignment that their rows go by: by another, a position is another row.
    prepared : dict of str to str
        The names of the preparations that parties' columns come of.
    preparations : dict of str to str
        What these are, as JSON; only in one process. Otherwise parties keep them.
    """

    rows: int
    fingerprints: dict[str, str] = {}
    alignment: str | None = None
    prepared: dict[str, str] = {}
    preparations: dict[str, str] = {}

    def __repr__(self) -> str:
        # Without what preparations are: levels and means do not belong in a log.
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "preparations")
        return f"Tables({', '.join(shown)})"

    def of(self, party: str) -> "Tables":
        """Keep what is of this party."""
        told = (self.fingerprints, self.prepared, self.preparations)
        fingerprints, prepared, fitted = ({party: each[party]} if party in each else {} for each in told)
        return Tables(self.rows, fingerprints, self.alignment, prepared, fitted)

    def compared(self, now: "Tables") -> Seen | None:
        """Say whether these are the tables of now, or have changed, or others; None where nobody can tell."""
        if self.alignment is not None and now.alignment is not None and self.alignment != now.alignment:
            return "aligned again"
        if self.rows != now.rows or self.alignment != now.alignment:
            return "new rows"
        if self.changed(now):
            return "changed"
        return "same" if self.fingerprints and self.fingerprints == now.fingerprints else None

    def changed(self, now: "Tables") -> list[str]:
        """Name the parties whose tables are not as they were."""
        return [
            party
            for party, before in self.fingerprints.items()
            if before != (after := now.fingerprints.get(party, "")) and _key_name(before) == _key_name(after)
        ]

    def require_unchanged(self, now: "Tables") -> None:
        """Require tables that did not change: other rows are other rows, but these were rows that a model has seen."""
        if self.compared(now) == "changed":
            names = self.changed(now)
            whose = f"table of {names[0]}" if len(names) == 1 else f"tables of {', '.join(names)}"
            raise AlignmentError(
                f"The {whose} changed since the model was learned, with as many rows as before: what is found would be "
                "neither of rows that it learned from, nor of rows held out. Use the table of before, or learn again; "
                "changed='allow' takes it as it is (--changed allow, or changed = \"allow\" in a [[job]])."
            )


def with_table(found: R, learned_from: Tables | None, now: Tables) -> R:
    """Have a report say on which table it rests, if it has a place for that."""
    if learned_from is None or not isinstance(found, msgspec.Struct) or not hasattr(found, "table"):
        return found
    return msgspec.structs.replace(found, table=learned_from.compared(now))


def fingerprint(data: PartyData) -> bytes:
    """Give the fingerprint of a party's table, which is read once; the key is made where there is none yet."""
    # Of columns prepared otherwise it is another one, whether or not they came out alike.
    return data.once(Fingerprint(data.table_key, data.preparation))


def key_here(party: str) -> TableKey:
    """Give a party of one process the key that it has in the next one, too."""
    return TableKey(digest(b"colonnade table key", party.encode()))


@dataclass(frozen=True)
class Fingerprint:
    """Makes the fingerprint of a table, by a key, whose columns come of a preparation of this name."""

    key: bytes = field(repr=False)
    preparation: str

    def __call__(self, table: Table) -> bytes:
        """Read the table once."""
        # Another name than when all values were hashed: nobody can tell these from changed ones.
        name = hmac.digest(self.key, b"name of sums", "sha256")[:KEY_NAME_BYTES]
        told = _table_digest(hmac.digest(self.key, b"multipliers", "sha256"), table) + self.preparation.encode()
        return (name + hmac.digest(self.key, told, "sha256"))[:FINGERPRINT_BYTES]


def _table_digest(secret: bytes, table: Table) -> bytes:
    """Hash what a table adds up to, with its names, keys, weights and split. Whoever has it can try values."""
    names = table.feature_names if table.label_name is None else (*table.feature_names, table.label_name)
    what = (table.n_rows, table.key_digest, table.label_name, table.weight_column, table.split_column)
    whole = hashlib.sha256(msgspec.msgpack.encode((names, what), enc_hook=_bytes))
    for found in table.map(partial(_block_digest, secret)):
        whole.update(found)
    if table.label_levels is not None:
        whole.update(msgspec.msgpack.encode(table.label_levels))
    return whole.digest()


def _block_digest(secret: bytes, block: Block) -> bytes:
    """Add up each column's values, as whole numbers of 64 bits, and their upper halves by themselves; modulo 2^64.

    Of columns that differ, one of the two sums does, but for one choice of multipliers in 2^33: an upper half that
    differs shows in its own sum, and where only lower halves do, their difference is no multiple of 2^32.
    """
    whole, upper = _multipliers(secret)[:, : len(block.values)]
    columns = block.values.T.astype("<f8", copy=False).view("<u8")
    sums = np.empty((len(columns), 2), "<u8")
    for start in range(0, len(columns), COLUMNS_AT_ONCE):
        some = slice(start, start + COLUMNS_AT_ONCE)
        np.einsum("ji,i->j", columns[some], whole, out=sums[some, 0])
        np.einsum("ji,i->j", columns[some] >> np.uint64(32), upper, out=sums[some, 1])
    return hashlib.sha256(sums.data).digest()


@lru_cache(maxsize=16)
def _multipliers(secret: bytes) -> npt.NDArray[np.uint64]:
    """Give two numbers of 64 random bits for each row of a block, the same ones for the same secret."""
    drawn = hashlib.shake_256(secret).digest(2 * 8 * BLOCK_ROWS)
    return np.frombuffer(drawn, "<u8").reshape(2, BLOCK_ROWS)


def _bytes(values: Any) -> bytes:
    found: bytes = values.tobytes()
    return found


def _key_name(told: str) -> str:
    return told[: 2 * KEY_NAME_BYTES]
