"""Gram matrices in windows: a server that repeats, skips, mixes or cuts windows learns no sum of fewer rows.

One of all rows but a window, or of a window, beside that of all rows, would tell of few rows.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.contracts import Outbox
from colonnade.kernels import selections
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import AskPairKey, PairKey
from colonnade.protocol.refusal import Refused
from colonnade.solvers.gram import question
from colonnade.solvers.gram.shares.messages import AskGramShares, GramShares
from colonnade.solvers.gram.windows.messages import AskGramBlocks, AskGramWindows, AskWindowShare, WindowShare
from colonnade.tasks.jobs import learn
from hostile_trial import HostileServer, hostile_server, made_parties, turned_away

TASK, GRAM, ALL = cn.Regression(), cn.SecureGram(), cn.AllRows()
N_ROWS, N_COLUMNS = 2 * BLOCK_ROWS + 500, 6
FIRST, SECOND, LAST = (
    AskWindowShare(start, min(start + BLOCK_ROWS, N_ROWS), N_COLUMNS) for start in range(0, N_ROWS, BLOCK_ROWS)
)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "AT_ONCE", 1000)
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HostileServer]:
    with hostile_server(tmp_path, made_parties(N_ROWS, (2, 2, 1))) as opened:
        yield opened


def until(server: HostileServer, kind: type[Message]) -> Outbox:
    """Open an honest job, and play it until it asks for this."""
    server.new_run("fit", task=TASK, sampler=ALL, solver=GRAM, seed=0)
    return server.play_until(learn(TASK, ALL, GRAM, None, server.roster, 0), kind)


def opened(server: HostileServer) -> None:
    until(server, AskWindowShare)


def test_an_honest_job_is_done(server: HostileServer) -> None:
    until(server, AskWindowShare)
    for window in (FIRST, SECOND, LAST):
        server.told_by_all(window, WindowShare)
    told = server.told_by_all(AskGramBlocks(), GramShares)
    assert all(reply.share == b"" for reply in told.values())
    server.honestly(learn(TASK, ALL, GRAM, None, server.roster, 0), "fit", task=TASK, sampler=ALL, solver=GRAM, seed=0)


def told_after(*windows: AskWindowShare) -> Callable[[HostileServer], None]:
    """Ask for sums after these windows only."""

    def attack(server: HostileServer) -> None:
        opened(server)
        for window in windows:
            server.told_by_all(window, WindowShare)
        server.told_by_all(AskGramBlocks(), GramShares)

    return attack


def in_new_attempt(server: HostileServer) -> None:
    """Have two windows shared, begin anew as if a key were lost, and go on with the third."""
    opened(server)
    for window in (FIRST, SECOND):
        server.told_by_all(window, WindowShare)
    server.told_by_all(AskPairKey(), PairKey)
    server.told_by_all(LAST, WindowShare)


def in_another_run(server: HostileServer) -> None:
    """Have two windows shared in one run, and go on with the third in another."""
    opened(server)
    for window in (FIRST, SECOND):
        server.told_by_all(window, WindowShare)
    opened(server)
    server.told_by_all(LAST, WindowShare)


def of_other_columns(server: HostileServer) -> None:
    """Say that others have more columns: windows are then shorter."""
    asked = until(server, AskGramWindows)
    server.told_by_each({p: replace(r, n_columns=(2, 2, 3)) for p, r in asked.items()}, Message)


def at_once(server: HostileServer) -> None:
    """Ask for all rows in one message, which does not hold them."""
    asked = until(server, AskGramWindows)
    outbox = {
        party: AskGramShares(None, None, r.n_columns, r.keys, r.box)
        for party, r in asked.items()
        if isinstance(r, AskGramWindows)
    }
    server.told_by_each(outbox, GramShares)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (told_after(), "would be next in this job, not AskGramBlocks"),
        (told_after(FIRST), "sums of all rows, where 16,384 of 33,268 were shared"),
        (told_after(FIRST, SECOND), "sums of all rows, where 32,768 of 33,268 were shared"),
        (told_after(FIRST, FIRST), "the window from 16,384 on of 33,268 rows"),
        (told_after(SECOND), "the window from 0 on of 33,268 rows"),
        (told_after(FIRST, LAST), "the window from 16,384 on of 33,268 rows"),
        (told_after(AskWindowShare(0, BLOCK_ROWS - 1, N_COLUMNS)), "the window from 0 on of 33,268 rows"),
        (in_new_attempt, "would be next in this job, not AskWindowShare"),
        (in_another_run, "the window from 0 on of 33,268 rows"),
        (of_other_columns, "the job sheet says"),
    ],
)
def test_no_sum_of_fewer_rows_is_told(server: HostileServer, attack: Callable[[HostileServer], None], why: str) -> None:
    turned_away(lambda: attack(server), why)
    assert not [reply for _, reply in server.received if isinstance(reply, GramShares)]


def test_shares_of_one_window_twice_have_nothing_in_common(server: HostileServer) -> None:
    """In two runs of the same job: what is added to the rows is another, and their difference tells nothing."""
    shares = []
    for _ in range(2):
        opened(server)
        told = server.told_by_all(FIRST, WindowShare)
        shares.append({party: np.frombuffer(reply.share or b"", "<u8") for party, reply in told.items()})
    for party, first in shares[0].items():
        apart = (first - shares[1][party]).astype(np.int64) / 2.0**63
        assert abs(apart.mean()) < 6 / np.sqrt(3 * len(apart)), "uniform"
        assert np.abs(apart).min() > 2.0**-40, "no row is the same in both"


def test_after_a_wrong_window_a_run_is_over(server: HostileServer) -> None:
    """Where sums are asked for before the last one: there is no second try."""
    turned_away(lambda: told_after(FIRST)(server), "were shared")
    for party in server.names:
        assert isinstance(server.ask(party, SECOND), Refused)


def test_a_day_counts_all_windows_with_the_first(tmp_path: Path) -> None:
    most = BLOCK_ROWS * 3
    policy = {"level": "usual", "moments_a_day": most}
    with hostile_server(tmp_path, made_parties(N_ROWS, (2, 2, 1)), policy=policy) as server:
        opened(server)
        turned_away(lambda: server.told_by_all(FIRST, WindowShare), f"limits replies to {most:,} .* a day")
        assert Reveals.MOMENTS not in server.disclosed("party1")
