"""Logs of parties that are real processes: chained over kills, and evidence of what was signed."""

import json
import signal
from pathlib import Path

import colonnade as cn
from colonnade.signing import digest
from command import run
from network_trial import Trial, events

SAMPLER = cn.ImportanceSampling(size=50, draws="committed", scores="plain")


def test_a_log_goes_on_after_kills_and_has_what_was_committed_to(tmp_path: Path) -> None:
    with Trial(tmp_path, [], wait_seconds=60.0) as trial:
        parties = {name: trial.start_party(name) for name in trial.names}
        path = tmp_path / "shop-state" / "log.jsonl"

        def kill(_phase: str, number: int) -> None:
            if number == 3 and not (path.parent / "log.torn").exists():
                parties["shop"].send_signal(signal.SIGKILL)
                parties["shop"].wait()
                with path.open("ab") as file:
                    file.write(b'{"time":"2026-')  # as if it had been killed in the middle of a line
                parties["shop"] = trial.start_party("shop")

        with cn.Federation.connect(trial.federation_file, on_round=kill) as federation:
            made = federation.coreset(cn.Regression(), SAMPLER, seed=3)
        for each in parties.values():
            assert each.wait(60) == 0
    evidence = made.coreset.evidence
    assert evidence is not None
    for name in trial.names:
        report = json.loads(run("log", "verify", str(trial.party_files[name]), "--json").stdout)
        assert (report["party"], report["findings"], report["signed_to"]) == (name, [], report["lines"])
        signed = {line["request"]: line["signature_digest"] for line in events_with_signature(tmp_path, name)}
        of_party = evidence.parties[name]
        assert signed["AskCommitment"] == digest(of_party.signature).hex()
        assert signed["DrawCommitted"] == digest(of_party.draw_signature).hex()
        opened = [line["sheet"] for line in events(tmp_path / f"{name}-state" / "log.jsonl") if "sheet" in line]
        assert opened == [digest(evidence.sheet).hex()]
    kept = [line["event"] for line in events(path)]
    assert kept.count("log torn") == 1
    assert kept.count("started") == 2
    assert (path.parent / "log.torn").read_bytes() == b'{"time":"2026-\n'


def events_with_signature(folder: Path, name: str) -> list[dict[str, str]]:
    return [line for line in events(folder / f"{name}-state" / "log.jsonl") if "signature_digest" in line]
