"""Committed draws between real processes: every party contributes its own entropy, and the saved run can be audited."""

from pathlib import Path

import pytest

import colonnade as cn
from network_trial import Trial


@pytest.mark.parametrize("scores", ["plain", pytest.param("secure", marks=pytest.mark.slow(sampled=False))])
def test_a_job_draws_committed_rows_and_opens_some(tmp_path: Path, scores: str) -> None:
    sampler = {"kind": "importance", "size": 100, "draws": "committed", "scores": scores}
    job = {"do": "coreset", "task": {"kind": "regression", "l2": 0.1}, "sampler": sampler, "audit": 3, "out": "run"}
    with Trial(tmp_path, [job]) as trial:
        for name in trial.names:
            trial.start_party(name, "--once", "--json")
        server = trial.start("server", str(trial.federation_file), "--json")
        said, _ = server.communicate(timeout=120)
        assert server.returncode == 0, said
    opened = cn.Run.load(tmp_path / "run").spot_check().opened
    assert set(opened) == set(trial.names)
    assert min(opened.values()) >= 3
