"""A clock that jumps: nobody's patience, budget or log hangs on it."""

from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from types import ModuleType

import pytest

import colonnade as cn
from colonnade.node import allowance, log, runs
from colonnade.node.log_chain import verify
from network_trial import events, federation_in_threads
from random_parties import make_parties

# A day to and fro, and a time long before any certificate.
JUMPS = cycle(timedelta(days=days) for days in (0, 1, -1, 400, -20_000))


class JumpingClock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # every caller asks for UTC
        assert tz is UTC
        return datetime.now(UTC) + next(JUMPS)


def fit(federation: cn.Federation) -> cn.Run[cn.LinearModel]:
    sampler, solver = cn.ImportanceSampling(40, scores="plain"), cn.Saga(batch=10, tolerance=0.5)
    return federation.fit(cn.Regression(l2=0.1), sampler=sampler, solver=solver, seed=1)


@pytest.fixture
def _jumping(monkeypatch: pytest.MonkeyPatch) -> None:
    places: tuple[ModuleType, ...] = (allowance, log, runs)
    for module in places:
        monkeypatch.setattr(module, "datetime", JumpingClock)


@pytest.mark.usefixtures("_jumping")
def test_a_run_under_a_clock_that_jumps_is_the_same(tmp_path: Path) -> None:
    with federation_in_threads(tmp_path, make_parties(widths=(3, 3))) as federation:
        found = fit(federation)
    wanted = fit(cn.Federation(make_parties(widths=(3, 3))))
    assert found.model.coef_.tobytes() == wanted.model.coef_.tobytes()
    assert found.ledger == wanted.ledger
    for name in ("party1", "party2"):
        path = tmp_path / f"{name}-state" / "log.jsonl"
        assert len({line["time"][:4] for line in events(path)}) > 1, "it jumped"
        with path.open("rb") as lines:
            assert verify(lines, {}).findings == []


def test_waiting_is_measured_by_clocks_that_only_grow() -> None:
    source = Path(cn.__file__).parent
    files = [file for folder in ("node", "transports") for file in (source / folder).rglob("*.py")]
    assert [file.name for file in files if "time.time(" in file.read_text()] == []
