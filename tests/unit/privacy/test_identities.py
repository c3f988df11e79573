import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import colonnade as cn
from colonnade.data.tables import read_table
from colonnade.ledger import SERVER
from colonnade.privacy.identities import (
    BesideServer,
    PinnedIdentity,
    RehearsedIdentity,
    identities_here,
    signing_key,
)
from colonnade.privacy.pair_keys import identity_of
from colonnade.privacy.primitives import KeyPair, mask_words
from colonnade.protocol.identity import Identity
from colonnade.protocol.memory import KeptHere
from colonnade.protocol.policy import Policy
from colonnade.protocol.session import PartyData
from colonnade.signing import digest


def test_a_signature_holds_for_its_party_and_text_alone() -> None:
    people = identities_here(["airline", "weather"], os.urandom)
    signature = people["airline"].sign(b"text")
    assert people["weather"].is_signed("airline", b"text", signature)
    assert not people["weather"].is_signed("weather", b"text", signature)
    assert not people["weather"].is_signed("airline", b"other", signature)
    assert not people["weather"].is_signed("airline", b"text", signature[:-1])
    assert not people["weather"].is_signed("stranger", b"text", signature)


def test_a_key_that_was_not_pinned_signs_nothing() -> None:
    pins = {"airline": signing_key(bytes(32)), "weather": signing_key(b"w" * 32)}
    impostor = PinnedIdentity("airline", b"x" * 32, pins, os.urandom)
    weather = PinnedIdentity("weather", b"w" * 32, pins, os.urandom)
    assert not weather.is_signed("airline", b"text", impostor.sign(b"text"))


@pytest.mark.parametrize("real", [False, True], ids=["rehearsed", "pinned"])
def test_whom_a_party_takes_part_with_does_not_count_the_server(real: bool) -> None:
    """The server's key is pinned like any: parties know by it who signed a job sheet."""
    seeds = {name: os.urandom(32) for name in ("weather", SERVER, "airline")}
    pins = {name: signing_key(seed) for name, seed in seeds.items()}
    people: dict[str, Identity] = {
        name: PinnedIdentity(name, seed, pins, os.urandom) if real else RehearsedIdentity(name, seeds, os.urandom)
        for name, seed in seeds.items()
    }
    for name in ("airline", "weather"):
        assert people[name].parties == ("airline", "weather")
        assert people[name].is_signed(SERVER, b"sheet", people[SERVER].sign(b"sheet"))
        assert not people[name].is_signed(SERVER, b"sheet", people["airline"].sign(b"sheet"))
        assert len(people[name].sign(b"sheet")) == 64


def test_beside_the_server_an_owners_identity_stays_what_it_is() -> None:
    """In one process the server's own identity vouches for the server, and the owner's pins for the parties."""
    here = identities_here(["airline", "weather"], os.urandom)
    pins = {name: signing_key(name.ljust(32).encode()) for name in ("airline", "weather")}
    airline, weather = (PinnedIdentity(name, name.ljust(32).encode(), pins, os.urandom) for name in pins)
    beside = BesideServer(airline, here[SERVER])
    assert (beside.name, beside.parties, repr(beside)) == (airline.name, airline.parties, repr(airline))
    assert beside.sign(b"text") == airline.sign(b"text")
    assert beside.derived(b"run") == airline.derived(b"run")
    assert beside.is_signed("weather", b"text", weather.sign(b"text"))
    assert not beside.is_signed("weather", b"text", here["weather"].sign(b"text"))
    assert beside.is_signed(SERVER, b"text", here[SERVER].sign(b"text"))
    assert not beside.is_signed(SERVER, b"text", weather.sign(b"text"))


def test_an_identity_needs_a_seed_and_its_own_pin() -> None:
    with pytest.raises(cn.InputError, match=r"identity of 'airline' needs 32 secret bytes .* among those of nobody"):
        PinnedIdentity("airline", bytes(32), {}, os.urandom)
    with pytest.raises(cn.InputError, match="needs 32 secret bytes"):
        PinnedIdentity("airline", bytes(31), {"airline": bytes(32)}, os.urandom)


def test_a_party_has_its_own_identity() -> None:
    weather = identities_here(["weather"], os.urandom)["weather"]
    with pytest.raises(cn.InputError, match="'airline' was given the identity of 'weather'"):
        cn.Party("airline", np.eye(3), identity=weather)


def test_two_sides_agree_and_different_keys_or_contexts_give_different_masks() -> None:
    ours, theirs, third = (os.urandom(32) for _ in range(3))
    agreed = KeyPair(ours).agreed(KeyPair(theirs).public)
    assert agreed == KeyPair(theirs).agreed(KeyPair(ours).public)
    masks = [
        mask_words(agreed, b"run 1", 50),
        mask_words(agreed, b"run 2", 50),
        mask_words(KeyPair(ours).agreed(KeyPair(third).public), b"run 1", 50),
    ]
    for i, mask in enumerate(masks):
        for other in masks[i + 1 :]:
            assert not (mask == other).any(), "a coincidence has probability 150 / 2^64"


def test_no_two_of_many_keys_give_one_mask() -> None:
    """All pairs of 24 keys, in two contexts: no word comes twice; a coincidence has 2^-64 a pair."""
    secrets = [os.urandom(32) for _ in range(24)]
    keys = [KeyPair(secret).public for secret in secrets]
    words = [
        mask_words(KeyPair(secrets[i]).agreed(keys[j]), context, 8).tolist()
        for i in range(24)
        for j in range(i + 1, 24)
        for context in (b"run 1", b"run 2")
    ]
    every = [word for mask in words for word in mask]
    assert len(set(every)) == len(every) == 24 * 23 // 2 * 2 * 8


def pinned(seed: bytes) -> PinnedIdentity:
    return PinnedIdentity("airline", seed, {"airline": signing_key(bytes(32))}, os.urandom)


def rehearsed(seed: bytes) -> RehearsedIdentity:
    return RehearsedIdentity("airline", {"airline": seed}, os.urandom)


@pytest.mark.parametrize(("made", "rehearses"), [(pinned, False), (rehearsed, True)], ids=["pinned", "rehearsed"])
def test_what_is_derived_is_secret_and_the_same_again(made: Callable[[bytes], Identity], rehearses: bool) -> None:
    first, again, other = (made(seed) for seed in (b"a" * 32, b"a" * 32, b"b" * 32))
    assert first.derived(b"run") == again.derived(b"run")
    assert len({first.derived(b"run"), first.derived(b"other"), other.derived(b"run")}) == 3
    asked = first.contribution(b"asked", b"run")
    assert asked == again.contribution(b"asked", b"run"), "also after a restart"
    assert (asked == first.contribution(b"asked", b"other run")) == rehearses
    assert (asked == other.contribution(b"asked", b"run")) == rehearses, (
        "a rehearsal depends on names and requests alone"
    )
    assert asked != first.contribution(b"other", b"run")


@pytest.mark.parametrize("point", [bytes(32), b"\x01" + bytes(31)])
def test_points_of_low_order_agree_on_nothing(point: bytes) -> None:
    with pytest.raises(cn.RemoteProtocolError, match="a public key that gives no shared secret"):
        KeyPair(os.urandom(32)).agreed(point)


def test_no_two_lists_of_parts_have_one_digest() -> None:
    assert len({digest(b"ab", b"c"), digest(b"a", b"bc"), digest(b"abc"), digest(b"abc", b"")}) == 4


def test_federations_that_sum_nothing_in_secret_load_no_cryptography() -> None:
    code = (
        "import sys, numpy as np, colonnade as cn\n"
        "f = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [2, 2, 2]))\n"
        "f.coreset(cn.Regression(), cn.ImportanceSampling(size=10))\n"
        "assert 'cryptography' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("colonnade.privacy.primitives.find_spec", lambda _: None)
    federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [2, 2, 2]))
    with pytest.raises(cn.UnsupportedError, match=r"pip install 'colonnade\[secure\]'"):
        federation.coreset(cn.Regression(), cn.ImportanceSampling(size=10, scores="secure"))


def test_one_request_looks_at_the_pins_once_and_the_next_one_sees_what_changed() -> None:
    """A file of T pins is not read for each of T signatures; a pin that was revoked counts from the next look on."""
    seeds = {name: os.urandom(32) for name in ("airline", "weather", SERVER)}
    pins = {name: signing_key(seed) for name, seed in seeds.items()}
    looks = []

    def now() -> dict[str, bytes]:
        looks.append(1)
        return dict(pins)

    identity = PinnedIdentity("airline", seeds["airline"], pins, os.urandom, now)
    signature = PinnedIdentity("weather", seeds["weather"], pins, os.urandom).sign(b"text")
    data = PartyData(read_table("airline", np.eye(3)), identity, Policy(), KeptHere())
    before = data.known()
    assert [before.is_signed("weather", b"text", signature) for _ in range(5)] == [True] * 5
    assert before.parties == ("airline", "weather")
    assert before.sign(b"text") == identity.sign(b"text")
    assert len(looks) == 1
    del pins["weather"]
    assert before.is_signed("weather", b"text", signature)
    for after in (data.known(), identity_of(data), identity):
        assert not after.is_signed("weather", b"text", signature)
        assert after.parties == ("airline",)
