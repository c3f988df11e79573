"""Servers and parties against secure sums of many parties, of which each shares masks with some others only.

Nobody chooses with whom: it follows from the names that owners pinned. So a server that wants the neighbours of its
victim to be its own has to bring as many pinned parties as are near.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Ring, Words, masked, to_numbers
from colonnade.messages import Message
from colonnade.privacy.circles import NEAR, NEIGHBOURS
from colonnade.privacy.pairwise import Secret, split_keys
from colonnade.privacy.primitives import KeyPair
from colonnade.privacy.statements import CircleKeys
from colonnade.protocol.session import PartySession
from colonnade.sampling.secure.messages import AskAgreement, AskMaskedScores, MaskedScores
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback

COUNT, VICTIM = NEAR + 8, 20
NAMES = [f"party{number:02}" for number in range(COUNT)]
AROUND = NEIGHBOURS.around(VICTIM, COUNT)
FAR = next(place for place in range(COUNT) if place not in AROUND)
RIDGE, SECURE = cn.Regression(l2=0.1), cn.ImportanceSampling(200, scores="secure")


def many_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(COUNT, 400, 2))
    return [
        cn.Party(name, table, label=table @ [1.0, 2.0] + rng.normal(size=400) if name == NAMES[-1] else None)
        for name, table in zip(NAMES, tables, strict=True)
    ]


class Meddling:
    """A server that changes what it asks of its victim, and keeps what it hears."""

    def __init__(self, change: Callable[[Any], Any] = lambda request: request) -> None:
        self._change = change
        self.asked: list[Message] = []
        self.inboxes: list[Inbox] = []

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Meddling":
        self.sessions = sessions
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        """Ask the victim something else."""
        if NAMES[VICTIM] in outbox:
            self.asked.append(outbox[NAMES[VICTIM]])
            outbox = {**outbox, NAMES[VICTIM]: self._change(outbox[NAMES[VICTIM]])}
        inbox = {name: self.sessions[name].answer(request) for name, request in outbox.items()}
        self.inboxes.append(inbox)
        return inbox

    def told(self, kind: type[Any]) -> list[dict[str, Any]]:
        """Give what all said to one kind of question."""
        return [dict(inbox) for inbox in self.inboxes if all(isinstance(reply, kind) for reply in inbox.values())]


def relaying(change: Callable[[list[bytes], list[Any]], tuple[list[bytes], list[Any]]]) -> Callable[[Any], Any]:
    """Relay other keys to the victim, or other signatures on them."""

    def changed(request: Any) -> Any:
        if not isinstance(request, AskMaskedScores):
            return request
        keys, signed = change([*split_keys(request.keys.keys)], [*request.keys.signed])
        return msgspec.structs.replace(request, keys=CircleKeys(b"".join(keys), tuple(signed)))

    return changed


MALLORY = KeyPair(b"m" * 32).public


def its_own_key(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
    """Stand in a neighbour's place."""
    return [MALLORY if place == AROUND[3] else key for place, key in enumerate(keys)], signed


def another_neighbour(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
    """Put a party that it knows, and that signed its key, in a neighbour's place."""
    keys[AROUND[3]], keys[FAR] = keys[FAR], keys[AROUND[3]]
    return keys, signed


def fewer_neighbours(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
    """Relay signatures of some neighbours only."""
    return keys, signed[:-1]


def fewer_parties(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
    """Leave out a party that stands far off: then others are near."""
    return keys[:FAR] + keys[FAR + 1 :], signed


def one_for_two(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
    """Relay a far party's key twice."""
    others = [place for place in range(COUNT) if place not in AROUND]
    keys[others[1]] = keys[others[0]]
    return keys, signed


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (its_own_key, f"a key for '{NAMES[AROUND[3]]}' that '{NAMES[AROUND[3]]}' did not sign"),
        (another_neighbour, f"a key for '{NAMES[AROUND[3]]}' that '{NAMES[AROUND[3]]}' did not sign"),
        (fewer_neighbours, f"signatures on {NEAR} keys where {NEAR + 1} are due"),
        (fewer_parties, f"{COUNT - 1} keys, but its owner pinned {COUNT} parties"),
        (one_for_two, "one key for two parties"),
    ],
)
def test_a_server_chooses_nobodys_neighbours(change: Any, why: str) -> None:
    wire = Meddling(relaying(change))
    with pytest.raises(cn.ColonnadeError, match=why):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, SECURE, seed=1)
    assert not wire.told(MaskedScores), "the victim masked nothing"


def test_another_key_where_the_victim_checks_none_makes_noise_of_the_sum() -> None:
    """It tells one party another key of somebody who is far off: its masks are then of another transcript."""

    def far_off(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
        keys[FAR] = MALLORY
        return keys, signed

    wire = Meddling(relaying(far_off))
    with pytest.raises(cn.ColonnadeError, match="a digest of another request than it was sent"):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, SECURE, seed=1)
    (told,) = wire.told(MaskedScores)
    transcripts = {name: reply.transcript for name, reply in told.items()}
    victim = transcripts.pop(NAMES[VICTIM])
    assert {victim}.isdisjoint(transcripts.values())
    assert len(set(transcripts.values())) == 1


@pytest.mark.parametrize("replayed", [AROUND[0], FAR])
def test_keys_of_an_earlier_run_are_of_no_use(replayed: int) -> None:
    """The same job again, with a key that a party signed, and no longer has: beside a new one of the victim's own."""
    wire = Meddling()
    federation = cn.Federation(many_parties(), transport=wire)
    federation.coreset(RIDGE, SECURE, seed=1)
    (first,) = [each for each in wire.asked if isinstance(each, AskMaskedScores)]

    def old(keys: list[bytes], signed: list[Any]) -> tuple[list[bytes], list[Any]]:
        keys[replayed] = split_keys(first.keys.keys)[replayed]
        if replayed in AROUND:
            signed[AROUND.index(replayed)] = first.keys.signed[AROUND.index(replayed)]
        return keys, signed

    wire._change = relaying(old)
    with pytest.raises(cn.ColonnadeError, match="a digest of another request than it was sent"):
        federation.coreset(RIDGE, SECURE, seed=1)


@pytest.mark.parametrize("place", [0, NEAR // 2, NEAR])
def test_a_signature_of_each_neighbour_is_compared(place: int) -> None:
    """The server hides from the victim that a neighbour saw, or sent, something else."""

    def forged(request: Any) -> Any:
        if not isinstance(request, AskAgreement):
            return request
        signed = [*request.signed]
        signed[place] = msgspec.structs.replace(signed[place], digest=bytes(32))
        return AskAgreement(tuple(signed))

    with pytest.raises(cn.ColonnadeError, match=f"a signature of '{NAMES[AROUND[place]]}' on something else"):
        cn.Federation(many_parties(), transport=Meddling(forged)).coreset(RIDGE, SECURE, seed=1)


RING = Ring(8, 40)


def unmasked_by(joined: list[int], secrets: list[Secret]) -> tuple[Floats, Floats]:
    """Take off the victim's numbers all masks that it shares with those that joined the server."""
    keys, numbers = [secret.key for secret in secrets], np.random.default_rng(1).random(50)
    sent = secrets[VICTIM].masked(numbers, RING, keys, AROUND, b"t")

    def mask(other: int) -> Words:
        return secrets[other].stream(VICTIM, keys, b"t", b"mask", len(numbers))

    after = [mask(other) for other in joined if other > VICTIM]
    before = [mask(other) for other in joined if other < VICTIM]
    return to_numbers(masked(sent, before, after, RING.width), RING), numbers


def test_all_neighbours_together_read_a_party_and_all_but_one_do_not() -> None:
    """The first is not held, and the page says so. Of uniform numbers none is a score by chance: 50 x 2^-39."""
    secrets = [Secret(bytes([number + 1]) * 32) for number in range(COUNT)]
    others = [place for place in AROUND if place != VICTIM]
    assert len(others) == NEAR
    found, numbers = unmasked_by(others, secrets)
    np.testing.assert_allclose(found, numbers, atol=2.0**-40)
    for honest in others:
        found, numbers = unmasked_by([place for place in others if place != honest], secrets)
        assert not np.isclose(found, numbers, atol=1e-6).any()


@pytest.mark.parametrize("transport", [InProcess, Loopback])
def test_sums_and_gram_matrices_of_many_parties_are_right(transport: Any) -> None:
    """Bits are those of any transport; what comes of them is what plain sums and rows give."""
    federation = cn.Federation(many_parties(), transport=transport)
    secure = federation.fit(RIDGE, sampler=SECURE, solver=cn.SecureGram(), seed=1)
    plain = federation.fit(RIDGE, sampler=cn.ImportanceSampling(200, scores="plain"), solver=cn.Central(), seed=1)
    assert secure.coreset.rows.tobytes() == plain.coreset.rows.tobytes()
    np.testing.assert_allclose(secure.coreset.weights, plain.coreset.weights, rtol=1e-6)
    np.testing.assert_allclose(secure.model.coef_, plain.model.coef_, rtol=1e-4, atol=1e-5)
    again = cn.Federation(many_parties()).fit(RIDGE, sampler=SECURE, solver=cn.SecureGram(), seed=1)
    assert secure.model.coef_.tobytes() == again.model.coef_.tobytes()
    report, masked_report = federation.evaluate(plain.model), federation.evaluate(plain.model, by=NAMES[3])
    assert masked_report.cost == pytest.approx(report.cost, rel=1e-9)
