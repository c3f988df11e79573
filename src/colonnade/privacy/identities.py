"""Who a party is to the others: a key it signs with, and the others' keys, pinned by its owner.

The server relays keys and could put its own in their place; a signature under a pinned key is what it cannot make.
Certificates of a network can take the place of pins: whatever is a `colonnade.protocol.identity.Identity` will do.
"""

import hmac
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import lru_cache
from hashlib import blake2b
from typing import TypeAlias

from colonnade.errors import InputError
from colonnade.ledger import SERVER
from colonnade.privacy.primitives import KEY_BYTES, KeyPair
from colonnade.protocol.identity import Identity
from colonnade.signing import digest

Entropy = Callable[[int], bytes]
# So many signatures a party need not check again.
KEPT_CHECKS = 64
# By name. While a key is renewed, the old one and the new one count.
Pins: TypeAlias = Mapping[str, bytes | tuple[bytes, ...]]


def signing_key(seed: bytes) -> bytes:
    """Compute the Ed25519 public key of a 32-byte seed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def encrypted(seed: bytes, passphrase: bytes) -> bytes:
    """Write a seed as an encrypted key, in PEM, that OpenSSL reads, too."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase),
    )


def decrypted(pem: bytes, passphrase: bytes) -> bytes | None:
    """Read the seed of an encrypted key; None if the passphrase, or the kind of key, is another."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(pem, passphrase)
    except ValueError:
        return None
    return key.private_bytes_raw() if isinstance(key, Ed25519PrivateKey) else None


def pins_of(pins: Pins, party: str) -> tuple[bytes, ...]:
    """List the pins of a party; none of one that is not there."""
    found = pins.get(party, ())
    return (found,) if isinstance(found, bytes) else found


def is_signed(pins: Pins, party: str, statement: bytes, signature: bytes) -> bool:
    """Tell whether a pinned party signed this statement: whoever has the pins can."""
    return any(_fits(pin, statement, signature) for pin in pins_of(pins, party))


def _fits(pin: bytes, statement: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(pin).verify(signature, statement)
    except (InvalidSignature, ValueError):
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
    pins : mapping of str to bytes, or to several
        The signing keys of the server and of all parties of the federation, this one included, as their owners told
        them; two of one that is being renewed. A job is done with exactly these parties, or not at all.
    entropy : callable
        Gives so many bytes, for the keys of single runs: the operating system's, outside tests.
    now : callable, optional
        Gives the pins that count now, where they change while a party runs: some are added, some revoked.
    """

    def __init__(
        self, name: str, seed: bytes, pins: Pins, entropy: Entropy, now: Callable[[], Pins] | None = None
    ) -> None:
        if len(seed) != KEY_BYTES or name not in pins:
            raise InputError(
                f"The identity of {name!r} needs {KEY_BYTES} secret bytes and a pin of its own among those of "
                f"{', '.join(pins) or 'nobody'}. Pass os.urandom({KEY_BYTES}) and the pins of all parties."
            )
        self.name = name
        self._seed = seed
        self._now = now or (lambda: pins)
        self._entropy = entropy
        # A run's opening is looked at again with each of its requests.
        self._fits = lru_cache(maxsize=KEPT_CHECKS)(_fits)

    @property
    def parties(self) -> tuple[str, ...]:
        """Whom it takes part with, itself included, in the order of their names; nobody all of whose pins are gone."""
        return tuple(sorted([name for name, pins in self._now().items() if pins and name != SERVER]))

    def now(self) -> "PinnedIdentity":
        """Look at the pins once: there are as many as parties, and as many signatures may be checked by them."""
        other, pins = copy(self), self._now()
        other._now = lambda: pins
        return other

    def fresh(self, count: int) -> bytes:
        """Draw secret bytes."""
        return self._entropy(count)

    def derived(self, context: bytes) -> bytes:
        """Derive secret bytes from the signing key's seed (HMAC-SHA-256)."""
        return hmac.digest(self._seed, digest(b"colonnade derived", context), "sha256")

    def pair(self, secret: bytes) -> KeyPair:
        """Make an X25519 key of secret bytes."""
        return KeyPair(secret)

    def contribution(self, request: bytes, run_nonce: bytes) -> bytes:
        """Derive bytes to add to a joint seed."""
        return self.derived(digest(b"contribution", run_nonce, request))

    def sign(self, statement: bytes) -> bytes:
        """Sign a statement as this party."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._seed).sign(statement)

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Tell whether a pinned party signed this statement."""
        return any(self._fits(pin, statement, signature) for pin in pins_of(self._now(), party))

    def __repr__(self) -> str:
        return f"PinnedIdentity({self.name!r}, pins of {', '.join(self.parties)})"


class RehearsedIdentity:
    """An identity of one process, where nobody is to be feared: whoever runs it holds everybody's secrets.

    Signatures are keyed hashes, as long as real ones, and so is what two of its keys agree on: of a hundred parties
    each agrees with many. What it contributes to a joint seed depends on its name and the run alone, so that the same
    seed gives the same rows. Its salts and keys are secret all the same.
    """

    def __init__(self, name: str, secrets: Mapping[str, bytes], entropy: Entropy) -> None:
        self.name = name
        self.parties = tuple(sorted(set(secrets) - {SERVER}))
        self._secrets = secrets
        self._entropy = entropy

    def now(self) -> "RehearsedIdentity":
        """Stay as it is."""
        return self

    def fresh(self, count: int) -> bytes:
        """Draw secret bytes."""
        return self._entropy(count)

    def derived(self, context: bytes) -> bytes:
        """Derive secret bytes from its secret (HMAC-SHA-256)."""
        return hmac.digest(self._secrets[self.name], digest(b"colonnade derived", context), "sha256")

    def pair(self, secret: bytes) -> "RehearsedPair":
        """Make a key of secret bytes."""
        return RehearsedPair(secret, self._secrets[SERVER])

    def contribution(self, request: bytes, run_nonce: bytes) -> bytes:  # noqa: ARG002  # the same in every run
        """Derive bytes to add to a joint seed from the party's name."""
        return digest(b"colonnade rehearsal", self.name.encode(), request)

    def sign(self, statement: bytes) -> bytes:
        """Sign a statement as this party (keyed BLAKE2b)."""
        return blake2b(statement, key=self._secrets[self.name]).digest()

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Tell whether a party of this process signed this statement."""
        secret = self._secrets.get(party)
        return secret is not None and hmac.compare_digest(blake2b(statement, key=secret).digest(), signature)

    def __repr__(self) -> str:
        return f"RehearsedIdentity({self.name!r}, among {', '.join(self.parties)})"


class RehearsedPair:
    """A key that agrees with others of its process, whose secret is known to all of them."""

    def __init__(self, secret: bytes, known_here: bytes) -> None:
        self._known_here = known_here
        self.public = blake2b(secret, digest_size=KEY_BYTES).digest()

    def agreed(self, their_key: bytes) -> bytes:
        """Agree on 32 bytes with whoever holds the secret of `their_key`."""
        both = min(self.public, their_key) + max(self.public, their_key)
        return blake2b(both, digest_size=KEY_BYTES, key=self._known_here).digest()

    def __repr__(self) -> str:
        return "RehearsedPair(not shown)"


def identities_here(names: Iterable[str], entropy: Entropy) -> dict[str, RehearsedIdentity]:
    """Make identities for the parties of one process, and for their server, that know each other, for a rehearsal."""
    secrets = {name: entropy(KEY_BYTES) for name in (*names, SERVER)}
    return {name: RehearsedIdentity(name, secrets, entropy) for name in secrets}


class BesideServer:
    """An identity of the owner's own, in one process with the server, which needs no pin there."""

    def __init__(self, identity: Identity, server: Identity) -> None:
        self._identity, self._server = identity, server
        self.name, self.parties = identity.name, identity.parties
        self.fresh, self.derived, self.sign = identity.fresh, identity.derived, identity.sign
        self.contribution, self.pair = identity.contribution, identity.pair

    def now(self) -> "BesideServer":
        """Give the owner's as it is now."""
        return BesideServer(self._identity.now(), self._server)

    def is_signed(self, party: str, statement: bytes, signature: bytes) -> bool:
        """Ask the server's identity about the server, and the owner's about parties."""
        return (self._server if party == SERVER else self._identity).is_signed(party, statement, signature)

    def __repr__(self) -> str:
        return repr(self._identity)
