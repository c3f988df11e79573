"""`colonnade server`, `party`, `status` and `certs` as people run them: real processes, mutual TLS, real exit codes."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

import colonnade as cn
from colonnade.cli import party, server
from colonnade.node.files import IdentityFile
from colonnade.node.identity_files import read_identity
from command import run
from network_trial import Trial, events, write_federation_file, write_party_file

FIT: dict[str, object] = {
    "do": "fit",
    "task": {"kind": "regression", "l2": 0.1},
    "sampler": {"kind": "importance", "size": 100},
    "out": "run",
}


def status(trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("status", str(trial.federation_file), "--json").stdout)
    return found


def test_three_parties_and_a_server(tmp_path: Path) -> None:
    jobs: list[dict[str, object]] = [
        FIT,
        {"do": "evaluate", "model": "run", "out": "evaluation.json"},
        {"do": "predict", "model": "run", "rows": [7, 3], "to": "shop", "out": "some.csv"},
        {"do": "certify", "run": "run", "out": "certificate.json", "rows": 200},
    ]
    with Trial(tmp_path, jobs) as trial:
        parties = {name: trial.start_party(name, "--once", "--json") for name in trial.names}
        process = trial.start("server", str(trial.federation_file), "--json")
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0, said
        done = json.loads(said.splitlines()[-1])["jobs"]
        for each in parties.values():
            words, _ = each.communicate(timeout=20)
            assert (each.returncode, json.loads(words.splitlines()[-1])) == (0, {"status": "done", "reason": ""})
    assert [job["do"] for job in done] == ["fit", "evaluate", "predict", "certify"]
    saved = cn.Run.load(tmp_path / "run")
    model = saved.model
    assert done[0]["units"] == 100 + 2 * 100 * 3 + 2 * 3 + 100 * 7
    assert json.loads((tmp_path / "evaluation.json").read_text())["cost"] == done[1]["cost"]
    here = [
        cn.Party(name, tmp_path / f"{name}.csv", key="customer", label="card_spending" if name == "bank" else None)
        for name in Trial.names
    ]
    federation = cn.Federation(here)
    certificate = msgspec.json.decode((tmp_path / "certificate.json").read_bytes(), type=cn.Certificate)
    assert (saved.findings.certificate, saved.findings.evaluation.cost) == (certificate, done[1]["cost"])
    assert certificate.table == "same"
    # Another process knows tables by other fingerprints.
    assert msgspec.structs.replace(certificate, table=None) == federation.certify(saved, rows=200)
    wanted = federation.predict(model, rows=[7, 3]).tolist()
    assert (tmp_path / "some.csv").read_text() == f"row,prediction\n7,{wanted[0]}\n3,{wanted[1]}\n"
    customers = [line.partition(",")[0].strip('"') for line in (tmp_path / "shop.csv").read_text().splitlines()[1:]]
    delivered = f"customer,prediction\n{customers[3]},{wanted[1]}\n{customers[7]},{wanted[0]}\n"
    assert (tmp_path / "shop-predictions.csv").read_text() == delivered

    found = status(trial)
    assert found["running"] is False
    assert [(each["verb"], each["status"]) for each in found["runs"]] == [
        ("hello", "done"),
        ("fit", "done"),
        ("evaluate", "done"),
        ("predict", "done"),
        ("certify", "done"),
    ]
    fit = found["runs"][1]
    assert (fit["phase"], fit["round"]) == ("telling", 8), "scores are summed in secret: three rounds instead of one"
    assert sum(fit["bytes_sent"].values()) + sum(fit["bytes_received"].values()) == done[0]["bytes"]
    assert "The server is not running." in run("status", str(trial.federation_file)).stdout
    assert all("run" in line for line in events(tmp_path / "bank-state/log.jsonl") if line["event"] == "answered")


def test_a_refusal_exits_6_on_all_sides_with_the_partys_reason(tmp_path: Path) -> None:
    with Trial(tmp_path, [FIT]) as trial:
        trial.party_files["shop"] = write_party_file(
            tmp_path, "shop", trial.port, policy={"level": "open", "rows_a_day": 50}
        )
        parties = {name: trial.start_party(name) for name in trial.names}
        process = trial.start_server()
        said, _ = process.communicate(timeout=60)
        reason = (
            "Party 'shop' did not answer AskMaskedScores: its owner's policy limits replies to 50 rows a day; "
            "0 were sent today, and this reply has 100. Ask for fewer, or wait until tomorrow (UTC)."
        )
        assert process.returncode == 6
        assert reason in said
        assert f"That was job 1, fit, of {trial.federation_file}." in said
        for each in parties.values():
            words, _ = each.communicate(timeout=20)
            assert each.returncode == 6
            assert reason in words
    assert status(trial)["runs"][-1]["error"] == reason
    refused = [line for line in events(tmp_path / "shop-state/log.jsonl") if line["event"] == "refused"]
    assert [(line["request"], line["cause"], line["server"]) for line in refused] == [
        ("AskMaskedScores", "policy", "server")
    ]


def test_a_party_that_stays_away_exits_5(tmp_path: Path) -> None:
    with Trial(tmp_path, [FIT], wait_seconds=3.0) as trial:
        bank = trial.start_party("bank")
        process = trial.start_server()
        assert process.wait(30) == 5
        assert bank.wait(30) == 5
        said = process.communicate()[0]
        assert "waiting for telephone, shop" in said
        assert "stayed away for more than 3 s" in bank.communicate()[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"partys": ["bank"]}, "the top level has no option `partys`. Did you mean `parties`"),
        ({"parties": ["bank", "bank"]}, "a party is named twice"),
        ({"parties": []}, "length >= 1"),
        ({"listen": "localhost"}, "has no port"),
        ({"tls": None}, "insecure_plaintext_on_loopback = true"),
        ({"run_by": "somebody"}, "which is not a party"),
        ({"wait_seconds": 0}, "$.wait_seconds"),
        ({"identity": None}, "it has no [identity]"),
        ({"identity": {"key": "certs/bank.identity", "pins": "certs/pins.toml"}}, "does not have the pin of"),
        ({"job": []}, "has no [[job]]"),
        (
            {"job": [{"do": "dance"}]},
            '[[job]] number 1 knows no do = "dance". Write one of "coreset", "fit", "evaluate", "predict", "',
        ),
        (
            {"job": [FIT, {**FIT, "sed": 1}]},
            '[[job]] number 2 with do = "fit" has no option `sed`. Did you mean `seed`?',
        ),
        (
            {"job": [{**FIT, "spotcheck": 1}]},
            '[[job]] number 1 with do = "fit" has no option `spotcheck`. Did you mean `spot_check`?',
        ),
        (
            {"job": [{**FIT, "sampler": {"kind": "improtance", "size": 9}}]},
            '[[job]] number 1, [job.sampler] knows no kind = "improtance". Did you mean "importance"?',
        ),
        ({"job": [{**FIT, "sampler": {"kind": "importance", "size": 0}}]}, "size must be a whole number"),
        ({"job": [{**FIT, "out": "."}]}, "is not a saved run"),
        ({"tls": {"authority": "no", "certificate": "no", "key": "no"}}, "Cannot read"),
    ],
)
def test_bad_federation_files_are_bad_input(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    trial = Trial(tmp_path, [FIT])
    path = write_federation_file(tmp_path, trial.names, trial.port, **{"job": [FIT], **changes})
    with pytest.raises(cn.InputError, match=re.escape(message)):
        server.command(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"policy": {"never": ["everything"]}}, "shop.toml, [policy]: A policy cannot name 'everything' in never"),
        (
            {"policy": {"lest_rows": 10}},
            "shop.toml: [policy] has no option `lest_rows`. Did you mean `least_rows`",
        ),
        ({"policy": {"accepted": ["0123abcd"]}}, "got '0123abcd'"),
        ({"policy": {"models_in_all": 1.5}}, "models_in_all must be a whole number, or below 1, got 1.5"),
        ({"policy": {"solvers": ["sage"]}}, "cannot name the solver 'sage'"),
        ({"policy": {"tasks": ["regress"]}}, "cannot name the task 'regress'"),
        ({"policy": {"phases": ["hello"]}}, "cannot name 'hello'"),
        ({"policy": {"rows_a_day": -1}}, "$.policy.rows_a_day"),
        ({"data": {"file": "missing.csv"}}, "missing.csv"),
        ({"policy": None}, "no party starts without a policy"),
        ({"policy": {"level": "lax"}}, 'policy.level cannot be "lax". Write one of "open", "strict", "usual".'),
        ({"policy": {"level": "stric"}}, 'policy.level cannot be "stric". Did you mean "strict"?'),
        ({"identity": None}, "it has no [identity]"),
        ({"identity": {"key": "missing", "pins": "certs/pins.toml"}}, "`colonnade certs identity` one"),
        ({"identity": {"key": "certs/bank.identity", "pins": "certs/pins.toml"}}, "does not have the pin of"),
        ({"identity": {"key": "certs/shop.identity", "pins": "shop.toml"}}, "Write one line for each party"),
        ({"identity": {"key": "certs/shop.key", "pins": "certs/pins.toml"}}, "has no key of 64 hexadecimal digits"),
        ({"identity": {"key": "certs/pins.toml", "pins": "certs/pins.toml"}}, "others can read or change it"),
        ({"server": "flare"}, "FLARE has certificates of its own"),
        ({"server": "flare", "tls": None}, "Submit a job to FLARE"),
        ({"tls": None, "insecure_plaintext_on_loopback": True, "server": "10.0.0.1:7143"}, "is not loopback"),
    ],
)
def test_bad_party_files_are_bad_input(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    trial = Trial(tmp_path, [FIT])
    with pytest.raises(cn.InputError, match=re.escape(message)):
        party.command(write_party_file(tmp_path, "shop", trial.port, **changes))


def test_certs_are_made_once_and_keys_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    made = json.loads(run("certs", "new", str(folder), "--party", "bank", "--party", "shop", "--json").stdout)
    assert [Path(path).name for path in made["certificates"]] == ["ca.pem", "server.pem", "bank.pem", "shop.pem"]
    secrets = [*folder.glob("*.key"), *folder.glob("*.identity")]
    assert len(secrets) == 4 + 3
    assert re.findall('^"(.*)" =', (folder / "pins.toml").read_text(), re.M) == ["bank", "shop", "server"]
    for key in secrets:
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    again = run("certs", "new", str(folder), "--party", "bank")
    assert again.returncode == 3
    assert "is not an empty folder" in again.stderr
    for name in ("../bank", "ca", "server", "b k"):
        done = run("certs", "new", str(tmp_path / "other"), "--party", name)
        assert done.returncode == 3, name
    assert not (tmp_path / "other").exists()
    named = run("certs", "new", str(tmp_path / "other"), "--server", "hub", "--party", "server")
    assert "that is the server's name in pins.toml" in named.stderr
    assert not (tmp_path / "other").exists()
    assert run("certs", "new", str(tmp_path / "other"), "--server", "hub", "--party", "bank").returncode == 0
    assert (tmp_path / "other" / "server.identity").exists(), "whatever its certificate's name is"
    assert "--json" in run("certs", "new", "--help").stdout


def test_an_owner_makes_an_identity_and_tells_its_pin(tmp_path: Path) -> None:
    told = run("certs", "identity", str(tmp_path), "--party", "bank")
    assert re.fullmatch(r'"bank" = "[0-9a-f]{64}"\n', told.stdout), "a line for everybody's pins.toml, and nothing else"
    (tmp_path / "pins.toml").write_text(told.stdout)
    files = IdentityFile(str(tmp_path / "bank.identity"), str(tmp_path / "pins.toml"))
    with pytest.raises(
        cn.InputError, match=r"pins.toml has no pin of the server.* `colonnade certs identity --server`"
    ):
        read_identity("bank", files)
    (tmp_path / "pins.toml").write_text(told.stdout + run("certs", "identity", str(tmp_path), "--server").stdout)
    assert read_identity("bank", files).parties == ("bank",)
    assert (tmp_path / "bank.identity").read_text().strip() not in told.stdout + told.stderr
    again = run("certs", "identity", str(tmp_path), "--party", "bank", "--json")
    assert again.returncode == 3
    assert run("certs", "identity", str(tmp_path), "--party", "../bank").returncode == 3
    named = run("certs", "identity", str(tmp_path / "new"), "--party", "server")
    assert (named.returncode, "cannot be called 'server'. Pass --server" in named.stderr) == (3, True)
    pin = json.loads(run("certs", "identity", str(tmp_path), "--party", "shop", "--json").stdout)["pin"]
    assert re.fullmatch("[0-9a-f]{64}", pin)


def test_the_server_makes_an_identity_and_tells_its_pin(tmp_path: Path) -> None:
    told = run("certs", "identity", str(tmp_path), "--server")
    assert re.fullmatch(r'"server" = "[0-9a-f]{64}"\n', told.stdout)
    (tmp_path / "pins.toml").write_text(told.stdout)
    files = IdentityFile(str(tmp_path / "server.identity"), str(tmp_path / "pins.toml"))
    assert read_identity("server", files).parties == (), "it is no party"
    for choice in ([], ["--server", "--party", "bank"]):
        done = run("certs", "identity", str(tmp_path), *choice)
        assert (done.returncode, "Pass --party NAME, or --server" in done.stderr) == (3, True)
