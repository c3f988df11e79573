"""What a server relays of other parties: long texts are refused before anything of them is kept, also signed ones."""

import os

import pytest

from colonnade.errors import RemoteProtocolError
from colonnade.privacy.identities import PinnedIdentity, signing_key
from colonnade.privacy.pairwise import check_keys, check_signatures
from colonnade.privacy.statements import SignedDigest, SignedKey, key_statement, sent_statement

VIEW = b"v" * 32
SEEDS = {name: name.encode().ljust(32) for name in ("airline", "weather")}
PINS = {name: signing_key(seed) for name, seed in SEEDS.items()}
AIRLINE, WEATHER = (PinnedIdentity(name, seed, PINS, os.urandom) for name, seed in SEEDS.items())


@pytest.mark.parametrize(("n_key", "n_exchanged"), [(33, 32), (32, 33), (32, 10**6), (10**6, 0)])
def test_a_long_key_or_digest_is_refused_and_not_kept(n_key: int, n_exchanged: int) -> None:
    relayed = []
    for place, identity in enumerate((AIRLINE, WEATHER)):
        key, exchanged = bytes([place]) * n_key, b"e" * n_exchanged
        # Signed by who it is from: a party may be the server's friend.
        signature = identity.sign(key_statement.__wrapped__(identity.name, key, exchanged, VIEW))
        relayed.append(SignedKey(key, exchanged, signature))
    kept = key_statement.cache_info().misses
    with pytest.raises(RemoteProtocolError, match="a key for 'airline' that 'airline' did not sign"):
        check_keys(AIRLINE, relayed, VIEW)
    assert key_statement.cache_info().misses == kept


@pytest.mark.parametrize("size", [0, 33, 10**6])
def test_a_long_digest_of_what_was_sent_is_refused_and_not_kept(size: int) -> None:
    sent = b"d" * size
    signed = SignedDigest(sent, WEATHER.sign(sent_statement.__wrapped__("weather", VIEW, sent)))
    kept = sent_statement.cache_info().misses
    with pytest.raises(RemoteProtocolError, match="a signature of 'weather' on something else"):
        check_signatures(AIRLINE, [1], VIEW, [signed])
    assert sent_statement.cache_info().misses == kept
