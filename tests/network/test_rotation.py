"""Keys and certificates that change between real processes, while the others stay and job follows job."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import colonnade as cn
from colonnade.node.certificates import renew_certificate
from colonnade.node.identity_files import new_identity, read_pins
from colonnade.node.log_chain import verify
from network_trial import Trial, events, until, write_federation_file, write_party_file

SIGNED = "Every party signed what it committed to, and what it drew, for this job."
# A server that does a job whenever it is told to, and says how it went.
SERVER = """
import sys, time
from pathlib import Path
import colonnade as cn

sampler = cn.ImportanceSampling(size=100, draws="committed", scores="plain")
with cn.Federation.connect("federation.toml") as federation:
    for order in iter(lambda: next(iter(sorted(Path().glob("job-*"))), None), "never"):
        if order is None:
            time.sleep(0.02)
            continue
        order.unlink()
        if order.name.endswith("stop"):
            break
        try:
            run = federation.coreset(cn.Regression(), sampler, seed=3)
            federation.spot_check(run, rows=3).save(f"run-{order.name}")
            Path(f"done-{order.name}").write_text("ok")
        except cn.ColonnadeError as error:
            Path(f"done-{order.name}").write_text(str(error))
"""


class Rotating(Trial):
    """Processes that stay, and jobs one by one."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, [])
        (folder / "revoked.toml").write_text("")
        self.pins = folder / "certs/pins.toml"
        self.old = {name: pins[0].hex() for name, pins in read_pins(self.pins).items()}
        write_federation_file(folder, self.names, self.port, revoked="revoked.toml")
        self.n_jobs = 0
        self.living = {name: self.stay(name) for name in self.names}
        self.server = self.serve()

    def stay(self, name: str, **changes: object) -> "subprocess.Popen[str]":
        file = write_party_file(self.folder, name, self.port, **{"revoked": "revoked.toml", **changes})
        return self.start("party", str(file))

    def serve(self) -> "subprocess.Popen[str]":
        return self.start(command=[sys.executable, "-c", SERVER])

    def job(self) -> str:
        """Have a job done, and tell how it went."""
        self.n_jobs += 1
        name = f"job-{self.n_jobs:03d}"
        (self.folder / name).touch()
        done = self.folder / f"done-{name}"
        until(lambda: done.exists() and done.read_text(), 60)
        return done.read_text()

    def stop(self, process: "subprocess.Popen[str]") -> str:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=30)
        return said

    def stop_server(self) -> None:
        (self.folder / "job-stop").touch()
        said, _ = self.server.communicate(timeout=30)
        assert self.server.returncode == 0, said

    def new_pin(self, name: str) -> str:
        return new_identity(self.folder / "new", name).partition(" = ")[2].strip('"')

    def write_pins(self, **changes: list[str]) -> None:
        told = {name: changes.get(name, [pin]) for name, pin in self.old.items()}
        self.pins.write_text("".join(f'"{name}" = {pins!r}\n' for name, pins in told.items()))

    def evidence(self, run: str, pins: str) -> Sequence[str]:
        return cn.Run.load(self.folder / run).spot_check(pins=self.folder / pins).findings

    def findings(self, name: str, pins: str) -> list[str]:
        lines = (self.folder / f"{name}-state/log.jsonl").read_bytes().splitlines(keepends=True)
        return [each.what for each in verify(lines, read_pins(self.folder / pins)).findings]


def test_a_party_changes_key_and_certificate_and_the_others_stay(tmp_path: Path) -> None:
    with Rotating(tmp_path) as trial:
        assert trial.job() == "ok"
        new = trial.new_pin("shop")
        trial.write_pins(shop=[trial.old["shop"], new])
        assert trial.job() == "ok", "with the old key, while both count"
        trial.stop(trial.living["shop"])
        shutil.copytree(tmp_path / "certs", tmp_path / "stolen")
        renew_certificate(tmp_path / "certs", "shop", new_key=True)
        changed = {"identity": {"key": "new/shop.identity", "pins": "certs/pins.toml"}}
        trial.living["shop"] = trial.stay("shop", **changed)
        assert trial.job() == "ok", "with the new key, and everybody else as before"
        # A saved run's evidence and a log that the old key signed are checked while both are listed.
        for number in (1, 2, 3):
            assert SIGNED in trial.evidence(f"run-job-{number:03d}", "certs/pins.toml")
        assert trial.findings("shop", "certs/pins.toml") == []
        (tmp_path / "pins-of-all-time.toml").write_text(trial.pins.read_text())
        trial.write_pins(shop=[new])
        (tmp_path / "revoked.toml").write_text(f'pins = ["{trial.old["shop"]}"]\n')
        assert trial.job() == "ok", "the old pin is gone"
        assert "signed with an older key, whose pin --pins can name" in trial.findings("shop", "certs/pins.toml")[0]
        assert trial.findings("shop", "pins-of-all-time.toml") == []
        with pytest.raises(cn.RemoteProtocolError, match="shop"):
            trial.evidence("run-job-001", "certs/pins.toml")
        assert SIGNED in trial.evidence("run-job-001", "pins-of-all-time.toml")
        # The thief of the old key and certificate: at its own place, with pins and lists of its own.
        trial.stop(trial.living["shop"])
        (tmp_path / "thief.toml").write_text(f'"shop" = "{trial.old["shop"]}"\n"bank" = "{trial.old["bank"]}"\n')
        with (tmp_path / "thief.toml").open("a") as file:
            file.writelines(f'"{name}" = "{trial.old[name]}"\n' for name in ("telephone", "server"))
        trial.stay("shop", identity={"key": "stolen/shop.identity", "pins": "thief.toml"}, revoked=None)
        said = trial.job()
        assert "did not sign" in said or "revoked" in said
        assert [each.poll() for name, each in trial.living.items() if name != "shop"] == [None, None], "they stayed"
        trial.stop_server()
    for name in ("bank", "telephone"):
        log = events(tmp_path / f"{name}-state/log.jsonl")
        assert [each["event"] for each in log].count("started") == 1
        assert "pins.toml was read again: it has changed." in [each.get("words") for each in log]


def test_the_server_changes_key_and_certificate_and_parties_stay(tmp_path: Path) -> None:
    with Rotating(tmp_path) as trial:
        assert trial.job() == "ok"
        new = trial.new_pin("server")
        trial.write_pins(server=[trial.old["server"], new])
        trial.stop_server()
        shutil.copy(tmp_path / "certs/server.identity", tmp_path / "stolen.identity")
        shutil.copy(tmp_path / "new/server.identity", tmp_path / "certs/server.identity")
        renew_certificate(tmp_path / "certs", "server", new_key=True)
        trial.server = trial.serve()
        assert trial.job() == "ok"
        trial.write_pins(server=[new])
        (tmp_path / "revoked.toml").write_text(f'pins = ["{trial.old["server"]}"]\n')
        assert trial.job() == "ok"
        trial.stop_server()
        # The thief of the old key.
        shutil.copy(tmp_path / "stolen.identity", tmp_path / "certs/server.identity")
        (tmp_path / "thief.toml").write_text("".join(f'"{name}" = "{pin}"\n' for name, pin in trial.old.items()))
        identity = {"key": "stolen.identity", "pins": "thief.toml"}
        write_federation_file(tmp_path, trial.names, trial.port, identity=identity)
        trial.server = trial.serve()
        assert "it was sent a job sheet that the server its owner pinned did not sign" in trial.job()
        assert [each.poll() for each in trial.living.values()] == [None, None, None], "they stayed"
        trial.stop_server()


@pytest.mark.slow
def test_a_key_that_is_changed_in_the_middle_of_a_run_ends_it_in_words_and_the_next_job_is_done(tmp_path: Path) -> None:
    with Rotating(tmp_path) as trial:
        trial.stop_server()
        new = trial.new_pin("shop")
        trial.write_pins(shop=[trial.old["shop"], new])
        changed: list[int] = []

        def on_round(_phase: str, number: int) -> None:
            if number == 3 and not changed:
                changed.append(number)
                trial.living["shop"].kill()
                trial.living["shop"].wait()
                identity = {"key": "new/shop.identity", "pins": "certs/pins.toml"}
                trial.living["shop"] = trial.stay("shop", identity=identity)

        sampler = cn.ImportanceSampling(size=100, draws="committed", scores="plain")
        with cn.Federation.connect(tmp_path / "federation.toml", on_round=on_round) as federation:
            changed.append(0)
            federation.coreset(cn.Regression(), sampler, seed=3)
            changed.clear()
            with pytest.raises(cn.ColonnadeError, match=r"shop.*its data, policy or key has changed"):
                federation.coreset(cn.Regression(), sampler, seed=4)
            federation.coreset(cn.Regression(), sampler, seed=4)
