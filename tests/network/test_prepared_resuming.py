"""A server dies between the run that prepared columns and the run that uses them."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from failpoint_trial import JOBS, LIMIT, Sweep
from network_trial import events

LOG, PREPARED = "server-state/log.jsonl", "fit, prepared"


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    sweep = Sweep(tmp_path)
    yield sweep
    sweep.close()


def killed_in_between(sweep: Sweep) -> None:
    """Let the server prepare columns, and die as soon as that is done."""
    before = len(events(sweep.folder / LOG))
    sweep.points(PREPARED, "server")
    log = events(sweep.folder / LOG)[before:]
    ended = [line["event"] == "run ended" and line["run"].startswith("prepare-") for line in log].index(True)
    sweep._clear()
    server = sweep._server(JOBS[PREPARED], kill=("after write log.jsonl", ended + 1))
    assert server.wait(LIMIT) == -signal.SIGKILL
    left = [path.name.partition("-")[0] for path in (sweep.folder / "server-state").glob("*.journal")]
    assert left == ["prepare"], "it is done, and nothing came of it yet"


def restarted(sweep: Sweep, name: str, *, empty: bool) -> None:
    sweep.parties[name].kill(signal.SIGTERM)
    if empty:
        shutil.rmtree(sweep.folder / f"{name}-state")
    sweep.parties[name] = sweep._party(name)
    sweep._wait_for_parties()


def test_the_next_server_goes_on_and_nothing_is_prepared_again(sweep: Sweep) -> None:
    killed_in_between(sweep)
    restarted(sweep, "shop", empty=False)
    seen = len(events(sweep.folder / "shop-state" / "log.jsonl"))
    outcome = sweep.play(JOBS[PREPARED])
    assert outcome.code == 0, outcome.said
    assert outcome.results == sweep._undisturbed[PREPARED].results
    log = events(sweep.folder / "shop-state" / "log.jsonl")[seen:]
    assert [line["verb"] for line in log if line["event"] == "run opened"] == ["hello", "fit"]


def test_a_party_whose_state_is_gone_says_so_and_the_next_try_prepares_anew(sweep: Sweep) -> None:
    """The journal of the preparation gave the same name, at every start of the server."""
    killed_in_between(sweep)
    restarted(sweep, "shop", empty=True)
    outcome = sweep.play(JOBS[PREPARED])
    assert outcome.code == 3
    assert "does not have the preparation" in outcome.said
    assert "Use that folder, or learn the model again" in outcome.said
    outcome = sweep.play(JOBS[PREPARED])
    assert outcome.code == 0, outcome.said
    assert not list((sweep.folder / "server-state").glob("*.journal"))
