"""What is signed outside secure phases: a job's sheet by the server, columns and drawn rows by the party they are of.

A party that is told what another party said believes it only with that party's signature, and only in the run it was
said in: every text has the digest of the run's sheet in it.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated

import msgspec
import numpy as np

from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.kernels.selections import CountedRows

# In every signed text, so that none of another protocol, or of another version, can take its place.
PROTOCOL = b"colonnade job 1"
# Of any signature: Ed25519's are as long.
SIGNATURE_BYTES = 64
# What generators of random numbers take.
Seed = Annotated[int, msgspec.Meta(ge=0)]


def digest(*parts: bytes) -> bytes:
    """Hash parts to 32 bytes so that no two lists of parts have one text: each is preceded by its length."""
    hashed = hashlib.sha256()
    for part in parts:  # not put together first: a part of a message can be of its size
        hashed.update(_length(part))
        hashed.update(part)
    return hashed.digest()


class SignedRows(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, eq=False):
    """The rows that a party drew, ascending, and its signature on them."""

    party: str
    rows: Rows
    signature: bytes


class VouchedRows(msgspec.Struct, frozen=True, forbid_unknown_fields=True, eq=False):
    """What all parties drew, ascending, and the signature of one that has checked what each of the others signed.

    Row i of the party at place j, by name, is the number j n + i, where there are n rows.
    """

    rows: Rows
    signature: bytes


class SignedMarks(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, eq=False):
    """Which rows of a window a party's column marks, a bit a row, and its signature on them."""

    party: str
    marks: Flags
    signature: bytes


class SignedWeights(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, eq=False):
    """A window of a party's column of row weights, and its signature on it."""

    party: str
    weights: Floats
    signature: bytes


class DrawSeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The seed of what all sides draw alike, and digests of the seeds of the parties' own draws, as they are listed."""

    shared: Seed
    own: tuple[bytes, ...]


@lru_cache(maxsize=4)  # in one process it is signed once, and looked at by all parties
def sheet_statement(sheet: bytes) -> bytes:
    """Give the text that the server signs to say: this is the job."""
    return digest(PROTOCOL, b"sheet", sheet)


def marks_statement(party: str, sheet: bytes, marks: Flags, first: int = 0) -> bytes:
    """Give the text that a party signs to say: these rows, from this one on, my column marks."""
    places = (place.to_bytes(8, "little") for place in (first, len(marks)))
    return digest(PROTOCOL, b"split", sheet, party.encode(), *places, np.packbits(marks).tobytes())


def weights_statement(party: str, sheet: bytes, weights: Floats, first: int = 0) -> bytes:
    """Give the text that a party signs to say: these are my rows' weights, from this row on."""
    told = np.ascontiguousarray(weights, "<f8").tobytes()
    return digest(PROTOCOL, b"weights", sheet, party.encode(), first.to_bytes(8, "little"), told)


def draw_statement(party: str, sheet: bytes, view: bytes, rows: Rows) -> bytes:
    """Give the text that a party signs to say: these rows I drew, of those that count in this view."""
    (statement,) = draw_statements(sheet, view, [SignedRows(party, rows, b"")])
    return statement


def draw_statements(sheet: bytes, view: bytes, drawn: Sequence[SignedRows]) -> list[bytes]:
    """Give the texts that parties sign likewise; how all of them begin is hashed once."""
    begun, seen, texts = hashlib.sha256(_text(PROTOCOL, b"draw", sheet)), _text(view), []
    for each in drawn:
        hashed, party = begun.copy(), each.party.encode()
        rows = each.rows.astype("<i8", copy=False).tobytes()
        # As `_text` writes them; a hundred parties each hash what the others drew.
        hashed.update(_length(party) + party + seen + _length(rows) + rows)
        texts.append(hashed.digest())
    return texts


def vouched_statement(parties: Sequence[str], sheet: bytes, view: bytes, rows: Rows) -> bytes:
    """Give the text that a party signs to say: these all parties have signed to have drawn."""
    names = _names(tuple(parties))
    return digest(PROTOCOL, b"vouched draws", sheet, view, names, rows.astype("<i8", copy=False).tobytes())


@lru_cache(maxsize=4)  # a run's parties are the same in all its draws, and a hundred of them each write a hundred names
def _names(parties: tuple[str, ...]) -> bytes:
    return _text(*(party.encode() for party in parties))


def all_drawn(drawn: Sequence[Rows], n_rows: int) -> Rows:
    """Put together what each party drew of a table, by name, numbered so that it ascends."""
    return np.concatenate([rows + place * n_rows for place, rows in enumerate(drawn)])


def _text(*parts: bytes) -> bytes:
    """Write parts one after another, as `digest` hashes them."""
    return b"".join([_length(part) + part for part in parts])


def _length(part: bytes) -> bytes:
    return len(part).to_bytes(8, "little")


def seed_digest(party: str, seed: int) -> bytes:
    """Hash the seed of a party's own draw: the sheet, which all parties read, has its digest only.

    Half a digest does: another seed with the same one is not found among 2^63.
    """
    return digest(PROTOCOL, b"seed", party.encode(), str(seed).encode())[:16]


def rows_digest(rows: Rows | CountedRows) -> bytes:
    """Hash the rows agreed on; all that count are listed a block at a time."""
    hashed, what = hashlib.sha256(), b"rows"
    hashed.update(len(what).to_bytes(8, "little") + what + (8 * len(rows)).to_bytes(8, "little"))
    for some in rows.by_block() if isinstance(rows, CountedRows) else (rows,):
        hashed.update(np.ascontiguousarray(some, "<i8").data)
    return hashed.digest()
