"""Who a party is to the others: a key it signs with, and the others' keys, pinned by its owner.

The server relays keys and could put its own in their place; a signature under a pinned key is what it cannot make.
Certificates of a network can take the place of pins: whatever is a `colonnade.protocol.identity.Identity` will do.
"""

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping

from colonnade.errors import InputError
from colonnade.privacy.primitives import KEY_BYTES
from colonnade.privacy.statements import digest

Entropy = Callable[[int], bytes]


def signing_key(seed: bytes) -> bytes:
    """Compute the Ed25519 public key of a 32-byte seed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def is_signed(pins: Mapping[str, bytes], party: str, statement: bytes, signature: bytes) -> bool:
    """Tell whether a pinned party signed this statement: whoever has the pins can."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(pins[party]).verify(signature, statement)
    except (InvalidSignature, KeyError, ValueError):
        return False
    return True


class PinnedIdentity:
    """A signing key and a list of pins.

    Parameters
    ----------
    name : str
        The party's.
    seed : bytes
        32 secret bytes of the operating system's entropy, from which the signing key is made. Kept in memory only.
    pins : mapping of str to bytes
        The signing keys of all parties of the federation, this one included, as their owners told them. A secure
        sum is made with exactly these parties, or not at all.
    entropy : callable
        Gives so many bytes, for the keys of single runs: the operating system's, outside tests.
    rehearses : bool
        In one process, where nobody is to be feared: what it contributes to a joint seed then depends on its name and
        the run alone, so that the same seed gives the same rows. Its salts and keys are secret all the same.
    """

    def __init__(
        self, name: str, seed: bytes, pins: Mapping[str, bytes], entropy: Entropy, *, rehearses: bool = False
    ) -> None:
        if len(seed) != KEY_BYTES or name not in pins:
            raise InputError(
                f"The identity of {name!r} needs {KEY_BYTES} secret bytes and a pin of its own among those of "
                f"{', '.join(pins) or 'nobody'}. Pass os.urandom({KEY_BYTES}) and the pins of all parties."
            )
        self.name = name
        # Whom it takes part with, itself included, in the order of their names.
        self.parties = tuple(sorted(pins))
        self._seed = seed
        self._pins = pins
        self._entropy = entropy
        self._rehearses = rehearses

    def fresh(self, count: int) -> bytes:
        """Draw secret bytes."""
        return self._entropy(count)

    def derived(self, context: bytes) -> bytes:
        """Derive secret bytes from the signing key's seed (HMAC-SHA-256)."""
        return hmac.digest(self._seed, digest(b"colonnade derived", context), "sha256")

    def contribution(self, request: bytes, run_nonce: bytes) -> bytes:
        """Derive bytes to add to a joint seed; in a rehearsal, from the party's name."""
        if self._rehearses:
            return digest(b"colonnade rehearsal", self.name.encode(), request)
        return self.derived(digest(b"contribution", run_nonce, request))

    def sign(self, statement: bytes) -> bytes:
        """Sign a statement as this party."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._seed).sign(statement)

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Tell whether a pinned party signed this statement."""
        return is_signed(self._pins, party, statement, signature)

    def __repr__(self) -> str:
        return f"PinnedIdentity({self.name!r}, pins of {', '.join(self.parties)})"


class _PinsOfSeeds(Mapping[str, bytes]):
    """Pins that are computed when first needed: most runs never need them."""

    def __init__(self, seeds: Mapping[str, bytes]) -> None:
        self._seeds = seeds
        self._keys: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        if name not in self._keys:
            self._keys[name] = signing_key(self._seeds[name])
        return self._keys[name]

    def __contains__(self, name: object) -> bool:
        return name in self._seeds

    def __iter__(self) -> Iterator[str]:
        return iter(self._seeds)

    def __len__(self) -> int:
        return len(self._seeds)


def identities_here(names: Iterable[str], entropy: Entropy) -> dict[str, PinnedIdentity]:
    """Make identities for the parties of one process, with pins of all, for a rehearsal: whoever runs it holds them."""
    seeds = {name: entropy(KEY_BYTES) for name in names}
    pins = _PinsOfSeeds(seeds)
    return {name: PinnedIdentity(name, seed, pins, entropy, rehearses=True) for name, seed in seeds.items()}
