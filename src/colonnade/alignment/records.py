"""What an alignment came to: for the caller, and for who asks later."""

from collections.abc import Mapping

import msgspec

from colonnade.alignment.meeting import KeyCard
from colonnade.ledger import aligned


class PartyRows(msgspec.Struct, frozen=True):
    """One party's rows: in all, without a partner at every other party, and left out because they repeat a key."""

    rows: int
    unmatched: int
    repeated: int


class AlignmentReport(msgspec.Struct, frozen=True):
    """How the rows of all parties were matched.

    Parameters
    ----------
    mode : str
        "clear", "aided" or "curve".
    fingerprint : str
        What all parties know this alignment by; another alignment has another one, and another split.
    matched : int
        How many rows every party has: those that all jobs are about.
    parties : dict of str to PartyRows
        How many rows each has.

    Examples
    --------
    >>> import pyarrow as pa, colonnade as cn
    >>> bank = cn.Party("bank", pa.table({"id": [3, 1, 2], "income": [30.0, 10.0, 20.0]}), key="id")
    >>> shop = cn.Party("shop", pa.table({"id": ["2", "3", "4"], "visits": [2.0, 3.0, 4.0]}), key="id")
    >>> print(cn.Federation([bank, shop], align="aided").alignment)
    2 rows matched (aided)
    party  rows  unmatched  repeated
    bank      3          1         0
    shop      3          1         0
    """

    mode: str
    fingerprint: str
    matched: int
    parties: dict[str, PartyRows]

    @classmethod
    def of(cls, mode: str, cards: Mapping[str, KeyCard], matched: int) -> "AlignmentReport":
        """Make it of the parties' cards."""
        fingerprint = next(iter(cards.values())).alignment or b""
        rows = {
            party: PartyRows(card.n_rows, card.n_keys - matched, card.n_rows - card.n_keys)
            for party, card in cards.items()
        }
        return cls(mode, fingerprint.hex(), matched, rows)

    def __str__(self) -> str:
        header = ("party", "rows", "unmatched", "repeated")
        lines = [
            (party, f"{each.rows:,}", f"{each.unmatched:,}", f"{each.repeated:,}")
            for party, each in self.parties.items()
        ]
        return f"{self.matched:,} rows matched ({self.mode})\n" + aligned([header, *lines], numbers={1, 2, 3})
