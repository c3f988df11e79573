"""What all ways of matching share: the server asks for lists block by block; the party lists in an order of its own."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from colonnade.alignment.shared_secret import aligning
from colonnade.contracts import Script
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Rows
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.protocol import checks
from colonnade.protocol.session import PartyData, PartyState

# Of each party, one after the other.
Tokens: TypeAlias = dict[str, bytes]
# A block is one message of some megabytes, and a step of the progress that is shown.
BLOCK_KEYS = 1 << 17
# No list is longer: so many keys are 64 GB of points.
MAX_KEYS = 1 << 31


def block_starts(n_keys: int) -> range:
    """List where blocks of a list start."""
    return range(0, n_keys, BLOCK_KEYS)


def block_size(n_keys: int, start: int) -> int:
    """Tell how many keys the block that starts there has."""
    return min(BLOCK_KEYS, n_keys - start)


def listed_keys(state: PartyState, start: int, data: PartyData) -> Iterator[bytes]:
    """Give the keys of a block of the party's list."""
    return iter(data.keys().values.take(listed_places(state, start)))


def listed_places(state: PartyState, start: int) -> Rows:
    """Give the places in the table of the keys of a block."""
    places = aligning(state).listed()
    check_start(start, len(places))
    return places[start : start + BLOCK_KEYS]


def check_start(start: int, n_keys: int = MAX_KEYS) -> None:
    """Require a place where a block of a list of so many keys starts."""
    if not 0 <= start < n_keys or start % BLOCK_KEYS:
        raise RemoteProtocolError(f"the server asked for a block of keys at {start}, where none starts.", party=SERVER)


def collect(n_keys: Mapping[str, int], block: Callable[[int, list[str]], Script[Tokens]]) -> Script[Tokens]:
    """Ask every party for its whole list, block by block, and give the lists of tokens.

    `block` asks for the one that starts at a place, of the parties whose lists are so long.
    """
    lists: dict[str, list[bytes]] = {party: [] for party in n_keys}
    for start in block_starts(max(n_keys.values())):
        found = yield from block(start, [party for party, count in n_keys.items() if start < count])
        for party, tokens in found.items():
            lists[party].append(tokens)
    return {party: b"".join(blocks) for party, blocks in lists.items()}


def check_length(party: str, reply: Message, found: bytes, expected: int) -> None:
    """Require a list of as many bytes as were asked for."""
    if len(found) != expected:
        raise checks.wrong(party, reply, f"{len(found):,} bytes where {expected:,} were asked for")
