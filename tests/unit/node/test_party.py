"""`cn.serve_party` as a program calls it: in threads of its own, with what is said kept."""

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as cn
from colonnade.contracts import Alignment
from colonnade.data import large_files
from colonnade.node.files import read_party_file
from colonnade.node.party import opened_desk
from network_trial import Trial, write_party_file


def test_parties_are_served_from_python_until_the_server_closes(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [])
    said: dict[str, list[str]] = {name: [] for name in trial.names}
    with ThreadPoolExecutor(len(trial.names)) as threads:
        served = [
            threads.submit(cn.serve_party, path, once=True, say=said[name].append)
            for name, path in trial.party_files.items()
        ]
        with cn.Federation.connect(trial.federation_file) as federation:
            run = federation.coreset(cn.Regression(), cn.ImportanceSampling(size=20))
            assert len(run.coreset) == 20
        closed = [each.result(timeout=30) for each in served]
    assert [(each.status, each.reason, each.code) for each in closed if each is not None] == [("done", "", 0)] * 3
    for name, words in said.items():
        assert f"Connected to 127.0.0.1:{trial.port} as {name!r}." in words
        assert words[-1] == "The server closed: done."
    again = [cn.Party("bank", tmp_path / "bank.csv", label="card_spending", key="customer")]
    assert repr(again[0]) in said["bank"][0]
    assert "at level open a server can ask for all rows" in said["bank"][1]


def test_a_party_gives_its_folder_and_signals_back(tmp_path: Path) -> None:
    """A server that stays away is an error; after it another call can have the folder."""
    trial = Trial(tmp_path, [])
    path = trial.party_files["bank"]
    path.write_text(path.read_text().replace("wait_seconds = 20.0", "wait_seconds = 0.2"))
    before = signal.getsignal(signal.SIGTERM)
    for _ in range(2):
        with pytest.raises(cn.PartyUnreachableError, match=r"stayed away for more than 0\.2 s"):
            cn.serve_party(path, once=True, say=lambda _: None)
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_owner_is_told_that_no_sum_is_over_enough_rows(tmp_path: Path) -> None:
    """A slip in least_rows refuses every sum: its owner reads that at the start, not after the first job."""
    trial = Trial(tmp_path, [])
    policy, said = {"level": "usual", "least_rows": 100_000}, list[str]()
    path = write_party_file(tmp_path, "bank", trial.port, policy=policy, wait_seconds=0.2)
    with pytest.raises(cn.PartyUnreachableError):
        cn.serve_party(path, once=True, say=said.append)
    assert [words for words in said if "least_rows = 100,000 in [policy] is more than the table's 800 rows" in words]


@pytest.mark.parametrize(
    ("predictions", "told"),
    [
        ("out.txt", r"/out.txt, must end in .csv or .parquet. Name another one"),
        ("missing/out.csv", "Nothing can be written to .*/missing/out.csv: it is a folder, or its folder does not"),
    ],
)
def test_an_owner_is_told_at_the_start_that_predictions_have_no_place(
    tmp_path: Path, predictions: str, told: str
) -> None:
    trial = Trial(tmp_path, [])
    path = write_party_file(tmp_path, "bank", trial.port, predictions=predictions)
    with pytest.raises(cn.InputError, match=told):
        cn.serve_party(path, once=True, say=lambda _: None)


def test_predictions_may_lie_in_a_state_folder_that_is_still_to_be_made(tmp_path: Path) -> None:
    trial = Trial(tmp_path, [])
    path = write_party_file(tmp_path, "bank", trial.port, state="new", predictions="new/out.csv", wait_seconds=0.2)
    with pytest.raises(cn.PartyUnreachableError):
        cn.serve_party(path, once=True, say=lambda _: None)


def test_an_owner_is_told_how_a_file_was_read(tmp_path: Path) -> None:
    trial, said = Trial(tmp_path, []), list[str]()
    content = (tmp_path / "bank.csv").read_text()
    (tmp_path / "bank.csv").write_text(content.replace(",", ";").replace(".", ","), encoding="utf-16")
    path = write_party_file(tmp_path, "bank", trial.port, policy={"level": "usual"}, wait_seconds=0.2)
    with pytest.raises(cn.PartyUnreachableError):
        cn.serve_party(path, once=True, say=said.append)
    assert "bank.csv: separated by semicolons, decimal comma, UTF-16." in said


def test_an_owner_is_told_of_a_wrong_value_when_a_party_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of a table that stays in its file: the words quote the value, and an error of a job goes to the server."""
    monkeypatch.setattr(large_files, "STREAMED_BYTES", 0)
    trial = Trial(tmp_path, [])
    values = np.random.default_rng(0).normal(size=(800, 2))
    values[700, 1] = 3e101
    parquet.write_table(pa.table({"age": values[:, 0], "income": values[:, 1]}), tmp_path / "bank.parquet")
    path = write_party_file(tmp_path, "bank", trial.port, data={"file": "bank.parquet"})
    with pytest.raises(cn.InputError, match=r"'income': its largest value in size is 3e\+101 in row 700 "):
        cn.serve_party(path, once=True, say=lambda _: None)


def test_a_day_is_counted_by_the_rows_that_an_alignment_leaves(tmp_path: Path) -> None:
    """A server decides how few rows are common: how often each is drawn would else tell its score in a day."""
    trial = Trial(tmp_path, [])
    path = write_party_file(tmp_path, "bank", trial.port, policy={"level": "usual"})
    positions = np.full(800, -1)
    positions[:20] = np.arange(20)
    for left in (800, 20):  # and again after a restart
        with opened_desk(read_party_file(path), lambda _: None) as (desk, _, _):
            assert desk._allowance.left()["row_ids"] == left
            desk._keep(Alignment(bytes(16), positions, mode="curve", parties=tuple(sorted(trial.names))))
            assert desk._allowance.left()["row_ids"] == 20
