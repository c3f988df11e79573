"""A party in which something breaks that nobody foresaw: it says so, shows nothing of its table, and goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.node.certificates import new_certificates
from network_trial import PartyThread, events, free_port, write_federation_file

X = np.random.default_rng(0).normal(size=(60, 4))
SECRET = f"{X[7, 3]}"


class Breaking:
    """A table that raises in the middle of a handler, in words that quote a row, until it is mended."""

    def __init__(self, table: Any, error: Exception) -> None:
        self._table, self.error = table, error
        self.is_mended = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._table, name)

    def map(self, work: Any, numbers: Any = None) -> Iterator[Any]:
        if not self.is_mended:
            raise self.error
        return self._table.map(work, numbers)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "error", [np.linalg.LinAlgError(f"singular at {SECRET}"), MemoryError(SECRET), ValueError(SECRET), KeyError(SECRET)]
)
def test_a_party_that_fails_inside_says_so_and_takes_part_in_the_next_run(tmp_path: Path, error: Exception) -> None:
    parties = cn.split_columns(X, X.sum(axis=1), [2, 2])
    breaking = Breaking(parties[1].table, error)
    parties[1].table = breaking  # type: ignore[assignment]
    new_certificates(tmp_path / "certs", ["party1", "party2"])
    path = write_federation_file(tmp_path, ["party1", "party2"], port := free_port())
    threads = [PartyThread(tmp_path, party, port) for party in parties]
    try:
        with cn.Federation.connect(path) as federation:
            sampler = cn.ImportanceSampling(20)
            with pytest.raises(
                cn.RemoteProtocolError, match="'party2' did not answer OpenJob: it failed inside"
            ) as caught:
                federation.coreset(cn.Regression(), sampler)
            assert (caught.value.party, caught.value.kind) == ("party2", "OpenJob")
            assert type(error).__name__ not in str(caught.value)
            breaking.is_mended = True
            assert len(federation.coreset(cn.Regression(), sampler).coreset) == 20
    finally:
        outcomes = [thread.join() for thread in threads]
    assert [getattr(outcome, "status", outcome) for outcome in outcomes] == ["done", "done"]
    failed = [event for event in events(threads[1].log_path) if event["event"] == "failed"]
    assert [(event["error"], event["where"].partition(":")[0]) for event in failed] == [
        (type(error).__name__, Path(__file__).name)
    ]
    server_files = [file.read_text(errors="replace") for file in (tmp_path / "server-state").iterdir()]
    for text in (str(caught.value), threads[1].log_path.read_text(), *server_files, *threads[0].said):
        assert SECRET not in text
    assert any(SECRET in said and "Traceback" in said for said in threads[1].said), "the owner is told all"
