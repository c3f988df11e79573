"""Attack 4: a party whose owner wrote no policy. Attack 7: a run that is said to be for no task."""

from pathlib import Path

import numpy as np
import pytest

from colonnade.kernels.arrays import Floats, Rows
from colonnade.messages import Message, sendable_rows
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import Ready, UseAllRows, UseRows, UseSharedDraw
from colonnade.solvers.central import AskColumns, Columns
from colonnade.solvers.distdim import AskLocalClusters, LocalClusters
from hostile_trial import N_ROWS, HostileServer, TurnedAwayError, columns_of, features_of, hostile_server, made_parties


def tables(server: HostileServer, selection: Message) -> dict[str, Floats]:
    """Select rows and ask for them: features and labels of all parties, exact, two requests each, 10 ms."""
    server.told_by_all(selection, Ready)
    replies = server.told_by_all(AskColumns(with_label=True), Columns)
    return {
        party: reply.features if reply.labels is None else np.column_stack([reply.features, reply.labels])
        for party, reply in replies.items()
    }


def rows_by_clusters(server: HostileServer, party: str) -> Floats:
    """As many clusters as rows: each centre is a row, and each row says which it is. All rows exact."""
    server.told(party, UseAllRows(), Ready)
    reply = server.told(party, AskLocalClusters(N_ROWS, 0, None), LocalClusters)
    return np.asarray(reply.centers[reply.nearest])


@pytest.mark.parametrize(
    ("selection", "rows"),
    [
        (UseAllRows(), np.arange(N_ROWS)),
        (UseRows(sendable_rows([3, 3, 17])), np.array([3, 3, 17])),
        (UseSharedDraw(500, 0), np.sort(np.random.default_rng(0).integers(N_ROWS, size=500))),
    ],
)
def test_without_a_policy_a_party_tells_its_table(tmp_path: Path, selection: Message, rows: Rows) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties) as server:
        found = tables(server, selection)
        assert not [line for line in server.log_of("party1") if line["event"] == "refused"]
    for party in parties:
        np.testing.assert_array_equal(found[party.name], columns_of(party)[rows])


def test_without_a_policy_as_many_clusters_as_rows_are_the_rows(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties) as server:
        found = rows_by_clusters(server, "party1")
    np.testing.assert_allclose(found, features_of(parties[0]), rtol=1e-12)


def test_a_run_for_no_task_passes_a_list_of_tasks(tmp_path: Path) -> None:
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"tasks": ["kmeans"]}) as server:
        server.new_run(task="regression")
        with pytest.raises(TurnedAwayError, match="allows the tasks kmeans"):
            tables(server, UseAllRows())
        server.new_run(task=None)
        found = tables(server, UseAllRows())
    np.testing.assert_array_equal(found["party3"], columns_of(parties[2]))


def test_what_a_run_is_said_to_be_for_binds_nobody(tmp_path: Path) -> None:
    """A run for k-means by DistDim fetches labels, by Central: only the word was checked."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, {"tasks": ["kmeans"]}) as server:
        server.new_run(task="kmeans", sampler="all", solver="distdim")
        found = tables(server, UseAllRows())
        assert not any(isinstance(reply, Refused) for _, reply in server.received)
    np.testing.assert_array_equal(found["party3"], columns_of(parties[2]))
