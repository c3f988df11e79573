"""Secure sums of distinct draws: logarithms of chances, and rows of which some party is certain."""

from dataclasses import replace
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
import pytest
from scipy import stats

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.draws import log_of
from colonnade.kernels.masks import Ring, narrowest_ring, to_numbers, to_words
from colonnade.ledger import SERVER
from colonnade.privacy import pairwise
from colonnade.privacy.identities import identities_here
from colonnade.privacy.pairwise import Secret
from colonnade.sampling.distinct.messages import DistinctScores
from colonnade.sampling.secure import party as secure_party
from colonnade.sampling.secure.messages import MARGIN, MOST_LOG, AskMaskedLogs, MaskedScores
from colonnade.sampling.secure.server import SLACK
from colonnade.transports.loopback import Loopback
from secure_trial import Entropy, Wire, flip_message

N, WIDTHS = 300, (2, 3, 1)
NAMES = ("party1", "party2", "party3")
MECHANISMS: tuple[Literal["plain", "secure"], ...] = ("plain", "secure")
SECURE = cn.ImportanceSampling(100, draws="distinct", scores="secure")


def make_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(2, size=(N, sum(WIDTHS)))
    return X, X @ rng.normal(size=sum(WIDTHS)) + rng.normal(size=N)


def make_federation(transport: Any = Loopback, identities: Any = None, weight: Any = None) -> cn.Federation:
    parties = cn.split_columns(*make_data(), WIDTHS, weight=weight)
    for party in parties if identities is not None else ():
        party.identity = identities[party.name]
    return cn.Federation(parties, transport=transport)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", [cn.Regression(), cn.Regression(standardize=True), cn.KMeans(n_clusters=4)])
@pytest.mark.parametrize(("size", "share"), [(10, 0.0), (150, 0.0), (150, 0.4), (299, 0.0), (2000, 0.1)])
@pytest.mark.parametrize("totals", ["checked", "set"])
def test_same_rows_as_plain_and_weights_to_a_millionth(
    task: Any, size: int, share: float, weighted: bool, totals: Any
) -> None:
    weight = np.random.default_rng(1).uniform(0.01, 3, size=N) if weighted else None
    federation, split = make_federation(weight=weight), cn.HoldOut(0.2) if weighted else None
    plain, secure = (
        federation.coreset(
            task, cn.ImportanceSampling(size, share, "distinct", scores=scores, totals=totals), split=split, seed=5
        )
        for scores in MECHANISMS
    )
    np.testing.assert_array_equal(plain.coreset.rows, secure.coreset.rows)
    np.testing.assert_allclose(secure.coreset.weights, plain.coreset.weights, rtol=1e-6)
    assert plain.ledger.units == secure.ledger.units + 3, "the factors"
    assert secure.coreset.distinct


def test_the_server_sees_which_rows_somebody_is_certain_of_and_not_who() -> None:
    """In the rows where one or more parties are certain the sum is any number of the ring, another with other keys."""
    sums: list[np.ndarray] = []
    for seed in (1, 2):
        masked: list[MaskedScores] = []

        def keep(sender: str, _receiver: str, data: bytes, masked: list[MaskedScores] = masked) -> bytes:
            if sender != SERVER and isinstance(reply := codec().decode(data), MaskedScores):
                masked.append(reply)
            return data

        wire = Wire(keep)
        run = make_federation(wire, identities_here(NAMES, Entropy(seed))).coreset(cn.Regression(), SECURE, seed=2)
        words = [np.frombuffer(each.masked or b"", np.uint8).reshape(-1, each.width) for each in masked]
        padded = [np.pad(each, ((0, 0), (0, 8 - each.shape[1]))).view("<u8")[:, 0] for each in words]
        sums.append(np.asarray(np.sum(padded, axis=0, dtype=np.uint64)) & np.uint64((1 << 8 * masked[0].width) - 1))
    certain = np.zeros(len(run.coreset), bool)
    for session in wire.sessions.values():
        certain |= (session.state.draw_factor or 0.0) * session._data.scores(run.rule)[run.coreset.rows] >= 1
    assert 5 < certain.sum() < 60
    np.testing.assert_array_equal(sums[0] != sums[1], certain)
    np.testing.assert_array_equal(run.coreset.weights == 1, certain)


@pytest.mark.parametrize("n_infinite", [1, 2, 3])
def test_a_sum_with_infinite_numbers_is_any_number_of_the_ring(n_infinite: int) -> None:
    """4,000 sums against the uniform law, by Kolmogorov and Smirnov: false alarm 1e-4 each."""
    secrets, ring = [Secret(bytes([j + 1]) * 32) for j in range(3)], Ring(7, 20)
    keys = [each.key for each in secrets]
    numbers = np.full((3, 4000), 0.25)
    numbers[:n_infinite] = np.inf
    words = [each.masked(own, ring, keys, range(3), b"t") for each, own in zip(secrets, numbers, strict=True)]
    found = to_numbers(np.sum(words, axis=0, dtype=np.uint64), ring)
    assert stats.kstest(found / ring.largest, "uniform").pvalue > 1e-4
    finite = [each.masked(np.full(5, 0.25), ring, keys, range(3), b"t") for each in secrets]
    np.testing.assert_array_equal(to_numbers(np.sum(finite, axis=0, dtype=np.uint64), ring), 0.75)


def test_the_result_does_not_depend_on_the_keys() -> None:
    first, second = (
        make_federation(identities=identities_here(NAMES, Entropy(seed))).coreset(cn.Regression(), SECURE, seed=2)
        for seed in (1, 2)
    )
    assert first.coreset.weights.tobytes() == second.coreset.weights.tobytes()
    assert first.ledger == second.ledger


def test_nothing_of_scores_or_factors_reaches_the_server() -> None:
    received: list[bytes] = []
    wire = Wire(lambda sender, _, data: (sender != SERVER and received.append(data)) or data)  # type: ignore[func-returns-value]
    run = make_federation(wire).coreset(cn.Regression(), SECURE, seed=2)
    assert not any(isinstance(codec().decode(data), DistinctScores) for data in received)
    assert run.ledger.disclosures()["party1", "server"] == ("schema", "totals", "row ids", "sums of scores")
    for session in wire.sessions.values():
        factor = session.state.draw_factor
        assert factor is not None
        own = session._data.scores(run.rule)[run.coreset.rows]
        for number in (factor, *own, *(factor * own)):
            assert not any(np.float64(number).tobytes() in data for data in received)


def test_a_flipped_bit_is_an_error_or_changes_nothing() -> None:
    seen: list[bytes] = []
    sampler = cn.ImportanceSampling(12, draws="distinct", scores="secure")
    federation = make_federation(Wire(lambda _s, _r, data: seen.append(data) or data))  # type: ignore[func-returns-value]
    expected = federation.coreset(cn.Regression(), sampler, seed=2).coreset
    assert {"AskMaskedLogs", "MaskedScores", "DrawnRows"} < {codec().decode(data).kind for data in seen}
    errors = 0
    for number, data in enumerate(seen):
        for bit in np.random.default_rng(number).choice(8 * len(data), size=2, replace=False):
            try:
                meddled = make_federation(Wire(flip_message(number, int(bit))))
                found = meddled.coreset(cn.Regression(), sampler, seed=2).coreset
            except cn.ColonnadeError:
                errors += 1
                continue
            assert codec().decode(data).kind == "Card"
            assert found.weights.tobytes() == expected.weights.tobytes()
    assert errors > 0.8 * 2 * len(seen)


class Asking(Loopback):
    """Changes what party2 is asked of logarithms."""

    change: ClassVar[dict[str, int]]

    def exchange(self, outbox: Outbox) -> Inbox:
        asked = outbox.get("party2")
        if isinstance(asked, AskMaskedLogs):
            outbox = {**outbox, "party2": msgspec.structs.replace(asked, **self.change)}
        return super().exchange(outbox)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"width": 3}, "a ring of 3 bytes"),
        ({"exponent": 60}, "a step of 2\\^-60"),
        ({"n_draws": 99}, "the job sheet says 100 where this AskMaskedLogs has n_draws = 99"),
        ({"size": 3}, "3 rows, where .* were drawn"),
        ({"size": 101}, "the job sheet says 0 to 100"),
    ],
)
def test_a_question_that_no_honest_server_asks(change: dict[str, int], match: str) -> None:
    asking = type("Changed", (Asking,), {"change": change})
    with pytest.raises(cn.ColonnadeError, match=match):
        make_federation(asking).coreset(cn.Regression(), SECURE, seed=2)


def test_chances_that_are_too_small_for_a_ring() -> None:
    weight = np.ones(N)
    weight[0] = 1e-9
    sampler = cn.ImportanceSampling(2000, draws="distinct", scores="secure")
    with pytest.raises(cn.UnsupportedError, match=r"does not fit in 64 bits\. Draw more rows, or pass draws=.strat"):
        make_federation(weight=weight).coreset(cn.Regression(), sampler)


def test_the_ring_is_wide_enough_that_certain_rows_are_seldom_misread() -> None:
    assert pytest.approx(-np.log(2.0**-20)) == MOST_LOG
    assert MARGIN >= 2**20


@pytest.mark.parametrize(("size", "share"), [(100, 0.99), (1, 0.0), (2, 0.0)])
def test_no_party_is_left_alone_in_a_sum(size: int, share: float) -> None:
    """Where only one drew by its scores, sums would be its own logarithms."""
    sampler = cn.ImportanceSampling(size, share, "distinct", scores="secure")
    with pytest.raises(cn.UnsupportedError, match=r"would draw no row by scores, .*Draw more rows, or a smaller share"):
        make_federation().coreset(cn.KMeans(2), sampler)


def test_where_all_rows_are_drawn_evenly_nobody_adds_anything() -> None:
    run = make_federation().coreset(cn.Regression(), cn.ImportanceSampling(50, 1.0, "distinct", scores="secure"))
    np.testing.assert_allclose(run.coreset.weights, N / 50, rtol=1e-12)


@pytest.mark.parametrize(
    ("lie", "match"),
    [
        (lambda logs: np.full_like(logs, np.inf), "row [0-9]+ is certain, which no party drew"),
        (lambda logs: logs + 1e6, "row [0-9]+ is certain, which no party drew"),
        (lambda logs: logs - 10, "row [0-9]+ is certain, which no party drew"),
        (lambda logs: logs + 5, "they add up to [0-9.]+, where 50 rows were drawn"),
        (lambda logs: np.full_like(logs, -0.02), "row [0-9]+ has less of one than its weight alone gives"),
    ],
)
def test_a_party_that_masks_something_else_is_noticed(monkeypatch: pytest.MonkeyPatch, lie: Any, match: str) -> None:
    """Sentinels everywhere, sums that leave the ring, negative logarithms: a sum that chances cannot have."""
    honest = secure_party._masked

    def lying(state: Any, request: Any, data: Any, summed: Any) -> Any:
        numbers = lie(summed.numbers) if data.name == "party2" else summed.numbers
        return honest(state, request, data, replace(summed, numbers=numbers))

    monkeypatch.setattr(secure_party, "_masked", lying)
    monkeypatch.setattr(pairwise, "to_words", wrapping)
    with pytest.raises(cn.RemoteProtocolError, match=match):
        make_federation().coreset(cn.Regression(), cn.ImportanceSampling(100, 0.5, "distinct", scores="secure"))


def wrapping(numbers: np.ndarray, ring: Ring) -> np.ndarray:
    """Count steps as `to_words` does, negative ones too."""
    return np.asarray(np.rint(np.ldexp(numbers, ring.exponent)).astype(np.int64).view(np.uint64))


def test_a_chance_at_the_limit_is_read_alike_from_both_sides() -> None:
    """At 1 - 2^-20, and the numbers next to it, one party or three: finite or certain, the weight is the same."""
    limit = 1 - 2.0**-20
    chance = np.array([np.nextafter(limit, 0), limit, np.nextafter(limit, 1)])
    logs = log_of(chance)
    ring = narrowest_ring(1e-3, MOST_LOG * MARGIN, 3)
    assert ring is not None
    for n_parties in (1, 2, 3):
        sums = to_numbers(n_parties * to_words(np.minimum(logs, MOST_LOG), ring), ring)
        assert (sums <= 3 * MOST_LOG * (1 + SLACK)).all(), "not taken for certain"
        np.testing.assert_allclose(-1 / np.expm1(-sums), 1, atol=1.1 * 2.0**-20)
