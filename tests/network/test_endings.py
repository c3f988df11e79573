"""The end of a run: what is done is not asked for again, whenever the server dies before its result is kept."""

import errno
import stat
from pathlib import Path
from typing import Any

import pytest

import colonnade as cn
from colonnade import disk, server_jobs
from colonnade.node.certificates import new_certificates
from network_trial import PartyThread, events, free_port, write_federation_file
from power_loss import PowerCut, power_loss
from random_parties import make_parties

COMMITTED = {"kind": "importance", "size": 30, "draws": "committed", "scores": "plain"}
TASK = {"kind": "regression", "l2": 0.1}
JOBS = [
    {"do": "coreset", "task": TASK, "sampler": COMMITTED, "spot_check": 2, "out": "coreset"},
    {"do": "fit", "task": TASK, "sampler": {"kind": "importance", "size": 30, "scores": "plain"}, "out": "run"},
    {"do": "evaluate", "model": "run", "out": "evaluation.json"},
]
RESULTS = ("coreset", "run", "evaluation.json")


class Town:
    """Two parties, and a server that does its jobs, as often as it is started."""

    def __init__(self, folder: Path) -> None:
        new_certificates(folder / "certs", ["party1", "party2"])
        self.folder, self.port = folder, free_port()
        self.home = folder / "server"
        self.home.mkdir()
        tables = {"tls": {k: f"../certs/{v}" for k, v in CERTIFICATES.items()}}
        tables["identity"] = {"key": "../certs/server.identity", "pins": "../certs/pins.toml"}
        self.path = write_federation_file(self.home, ["party1", "party2"], self.port, job=JOBS, **tables)

    def serve(self) -> list[dict[str, Any]]:
        parties = [PartyThread(self.folder, party, self.port) for party in make_parties(widths=(3, 3))]
        try:
            return list(server_jobs.do_jobs(self.path))
        finally:
            for party in parties:
                party.join()

    def told(self) -> list[tuple[Any, ...]]:
        """List what parties answered, but for greetings."""
        logs = {name: events(self.folder / f"{name}-state" / "log.jsonl") for name in ("party1", "party2")}
        return [
            (name, line["run"].partition("-")[0], line["request"], line["number"])
            for name, log in logs.items()
            for line in log
            if line["event"] == "answered" and line["request"] != "Hello"
        ]

    def left(self) -> list[str]:
        return [path.name for path in self.folder.rglob("*") if path.suffix in (".journal", ".fresh", ".stale")]


CERTIFICATES = {"authority": "ca.pem", "certificate": "server.pem", "key": "server.key"}


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize(
    "error", [PowerCut(), OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EROFS, "Read-only")]
)
def test_whatever_happens_while_a_result_is_saved_nothing_is_told_twice(
    town: Town, monkeypatch: pytest.MonkeyPatch, result: str, error: BaseException
) -> None:
    """The disk is full, or may not be written to, or the process dies: journals are what the result is made of."""
    with monkeypatch.context() as broken:
        write_file = disk.write_file

        def fail_there(path: Path, content: bytes, *, durable: bool = True) -> None:
            if f".{result}.fresh" in (path.name, path.parent.name):
                raise error
            write_file(path, content, durable=durable)

        broken.setattr(disk, "write_file", fail_there)
        with pytest.raises((PowerCut, OSError, cn.InputError)) as caught:
            town.serve()
    assert isinstance(error, PowerCut) or str(error) in str(caught.value)
    town.serve()
    told = town.told()
    assert len(told) == len(set(told))
    assert [name for name, _, request, _ in told if request == "AskCommitment"] == ["party1", "party2"]
    assert town.left() == []
    assert stat.S_IMODE((town.home / "run").stat().st_mode) == 0o700


@pytest.mark.parametrize("step", [0, 4, 9, 14, 19, 24])
def test_without_power_after_a_fit_nothing_is_told_twice(town: Town, step: int) -> None:
    """Of the server's folder only what was forced to the disk remains."""
    with power_loss(town.home) as power:
        fit = cn.Federation.fit

        def cut_soon(*arguments: Any, **options: Any) -> Any:
            run = fit(*arguments, **options)
            power.steps_left = step
            return run

        with pytest.MonkeyPatch.context() as watched:
            watched.setattr(cn.Federation, "fit", cut_soon)
            with pytest.raises(PowerCut):
                town.serve()
    town.serve()
    told = town.told()
    assert len(told) == len(set(told))
    assert town.left() == []
    assert len(cn.Run.load(town.home / "run").coreset) == 30


def test_a_session_in_python_that_dies_after_a_fit_gets_its_result_again(town: Town) -> None:
    def fit(federation: cn.Federation) -> cn.Run[cn.LinearModel]:
        return federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(20, scores="plain"), seed=1)

    def session(*, dies: bool) -> cn.Run[cn.LinearModel]:
        parties = [PartyThread(town.folder, party, town.port) for party in make_parties(widths=(3, 3))]
        try:
            with cn.Federation.connect(town.path) as federation:
                run = fit(federation)
                if dies:
                    raise PowerCut
                return run
        finally:
            for party in parties:
                party.join()

    with pytest.raises(PowerCut):
        session(dies=True)
    told = town.told()
    run, here = session(dies=False), fit(cn.Federation(make_parties(widths=(3, 3))))
    assert run.model.coef_.tobytes() == here.model.coef_.tobytes()
    assert run.ledger == here.ledger
    assert town.told() == told
    assert town.left() == []
