"""Sums of logarithms under masks, of which the server makes one party's part most: by what each draws, and by steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.coreset import Coreset
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Ring, to_numbers, to_words, unpack
from colonnade.messages import Message, Reveals
from colonnade.privacy.statements import SignedDigest
from colonnade.sampling.distinct.server import Distinct
from colonnade.sampling.plain.server import Quotas
from colonnade.sampling.rules.leverage import LeverageScores
from colonnade.sampling.secure import server as secure_sums
from colonnade.sampling.secure.messages import AskAgreement, AskMaskedLogs, AskMaskedScores, MaskedScores
from colonnade.signing import digest
from colonnade.tasks.jobs import draw
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, turned_away

TASK, RULE, TARGET = cn.Regression(), LeverageScores(fit_intercept=True), "party1"
TOTALS = (4.0, 5.0, 6.0)  # ranks
DISTINCT = cn.ImportanceSampling(60, 0.5, "distinct", scores="secure")  # 8, 10 and 12 rows by scores
HIDDEN: dict[str, Any] = {"never": ["scores", "features"], "row_ids_a_day": 10_000}


def deal(monkeypatch: pytest.MonkeyPatch, *counts: int, rate: float | None = None) -> None:
    """Let the server have parties draw so many rows each; and say that this was the rate."""
    honest = Distinct.quotas

    def dealt(*about: Any) -> Quotas:
        quotas = honest(*about)
        return Quotas(quotas.n_even, counts, quotas.seeds)

    monkeypatch.setattr(Distinct, "quotas", dealt)
    monkeypatch.setattr(secure_sums, "_check_all_drew", lambda _: None)
    if rate is not None:
        monkeypatch.setattr(secure_sums, "rate_of", lambda _: rate)


def coreset(server: HostileServer, sampler: cn.ImportanceSampling = DISTINCT, seed: int = 0) -> Coreset:
    script = draw(TASK, sampler, None, server.roster, seed)
    return server.honestly(script, "coreset", task=TASK, sampler=sampler, seed=seed).coreset


def test_a_sum_of_one_party_is_its_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others that draw nothing add nothing. Before a party looked at that, this told its scores to 1e-5."""
    deal(monkeypatch, 8, 0, 0)
    with hostile_server(tmp_path, made_parties(), {"level": "open"}) as server:
        turned_away(lambda: coreset(server), "party1 refused AskMaskedLogs: .*no rows of 'party2'")
        assert Reveals.SCORE_SUMS not in server.disclosed(TARGET)


@pytest.mark.parametrize(
    ("counts", "rate", "who"),
    [
        ((28, 1, 1), None, "party1 refused .* a draw of 28 rows, where 8 are due"),
        ((28, 1, 1), 28 / TOTALS[0], "party2 refused .* a draw of 1 rows, where 35 are due"),
        ((28, 1, 1), 1 / TOTALS[1], "party1 refused .* a draw of 28 rows, where 0.8 are due"),
        ((12, 15, 1), 12 / TOTALS[0], "party3 refused .* a draw of 1 rows, where 18 are due"),
        ((10, 10, 10), None, "party1 refused .* a draw of 10 rows, where 8 are due"),
        ((8, 10, 12), np.nan, "a draw of 8 rows, where nan are due"),
        ((8, 10, 12), np.inf, "a draw of 8 rows, where 100 are due"),
        ((8, 10, 12), -2.0, "a draw of 8 rows, where -8 are due"),
    ],
)
def test_all_draw_at_one_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counts: tuple[int, ...], rate: float | None, who: str
) -> None:
    """With 28 rows of one party and 1 of each other, 93 % of a sum is the one's."""
    deal(monkeypatch, *counts, rate=rate)
    with hostile_server(tmp_path, made_parties(), {"level": "open"}) as server:
        turned_away(lambda: coreset(server), who)


def test_masks_do_not_cancel_where_each_was_told_a_rate_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = dict(zip(("party1", "party2", "party3"), (28, 1, 1), strict=True))
    deal(monkeypatch, *counts.values())
    with hostile_server(tmp_path, made_parties(), {"level": "open"}) as server:
        server.new_run("coreset", task=TASK, sampler=DISTINCT, seed=0)
        script = draw(TASK, DISTINCT, None, server.roster, 0)
        asked = server.play_until(script, AskMaskedLogs)
        rates = {party: count / total for (party, count), total in zip(counts.items(), TOTALS, strict=True)}
        replies = server.told_by_each(
            {party: msgspec.structs.replace(asked[party], rate=rate) for party, rate in rates.items()}, MaskedScores
        )
        sums = sums_of(replies, asked[TARGET])
        signed = tuple(SignedDigest(digest(r.masked or b""), r.signature) for r in replies.values())
        turned_away(lambda: server.told(TARGET, AskAgreement(signed), Message), "something else than this party saw")
    assert np.mean(sums > 1e3) > 0.9, "they are any numbers of a ring that goes to 10^7 and more"


def sums_of(replies: Mapping[str, MaskedScores], request: Any) -> Floats:
    """Add up what parties masked, as the server does."""
    words = np.sum([unpack(reply.masked or b"", request.width) for reply in replies.values()], axis=0, dtype=np.uint64)
    return to_numbers(np.asarray(words), Ring(request.width, request.exponent))


def consistent(numbers: Floats, exponents: range, grid: Floats) -> float:
    """Give the part of a grid of candidates for the first of two numbers that their sums, rounded by steps, allow."""
    allowed, total = np.ones(len(grid), bool), numbers.sum()
    for exponent in exponents:
        ring = Ring(8, exponent)
        told = to_words(numbers, ring).sum()
        allowed &= to_words(grid, ring) + to_words(total - grid, ring) == told
    return float(allowed.mean())


def test_sums_by_many_steps_tell_single_numbers() -> None:
    """What the test below refuses is worth refusing: of two numbers, whose sum is known, 1 % of candidates are left."""
    rng = np.random.default_rng(0)
    left = [
        consistent(pair, range(2, 16), np.linspace(0, pair.sum(), 20_001)) for pair in rng.uniform(0.02, 0.3, (50, 2))
    ]
    assert min(left) > 0, "the truth is among them"
    assert np.median(left) < 0.02
    assert consistent(np.array([0.1, 0.2]), range(15, 16), np.linspace(0, 0.3, 20_001)) > 0.3, "one step leaves most"


@pytest.mark.parametrize("sampler", [DISTINCT, cn.ImportanceSampling(40, scores="secure")], ids=["logs", "scores"])
def test_sums_are_rounded_to_one_step(tmp_path: Path, sampler: cn.ImportanceSampling) -> None:
    with hostile_server(tmp_path, made_parties(), HIDDEN) as server:
        for seed in (0, 1, 0):
            coreset(server, sampler, seed)
        for step in (-1, 1, -9):
            server.new_run("coreset", task=TASK, sampler=sampler, seed=0)
            script = draw(TASK, sampler, None, server.roster, 0)
            honest: Any = server.play_until(script, AskMaskedLogs if sampler is DISTINCT else AskMaskedScores)[TARGET]
            request = msgspec.structs.replace(honest, width=8, exponent=honest.exponent + step)
            turned_away(lambda r=request: server.told(TARGET, r, MaskedScores), "rounded to other steps")  # type: ignore[misc]


def test_weights_of_rows_do_not_choose_the_step(tmp_path: Path) -> None:
    """The lightest of the drawn rows is another for another seed: honest draws of one sampler all have one step."""
    parties, weight = made_parties(), np.random.default_rng(2).uniform(0.1, 1.0, size=N_ROWS)
    parties[1] = cn.Party("party2", features_of(parties[1]), weight=weight)
    for sampler in (DISTINCT, cn.ImportanceSampling(10, scores="secure")):
        with hostile_server(tmp_path / sampler.draws, parties, HIDDEN) as server:
            assert len({coreset(server, sampler, seed).weights.tobytes() for seed in range(8)}) == 8
