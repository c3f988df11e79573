"""Attack 4: a party whose owner wrote no policy. Attack 7: a run that is said to be for no task, or for another.

Before there were job sheets, two requests told all tables, exact, in 0.2 s, and a run for k-means fetched labels.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.errors import InputError
from colonnade.kernels import selections
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.node.files import DAY_LIMITS, read_party_file
from colonnade.protocol.refusal import Refused
from colonnade.sampling.selecting import Ready, UseAllRows, UseRows, UseSharedDraw
from colonnade.solvers import central
from colonnade.solvers.central import AskColumns, AskColumnWindow, Columns
from colonnade.solvers.distdim import AskLocalClusters, LocalClusters
from colonnade.tasks.jobs import learn
from hostile_trial import N_ROWS, HostileServer, hostile_server, made_parties, turned_away

TASK, CENTRAL = cn.Regression(), cn.Central()


def tables(server: HostileServer, selection: Message) -> dict[str, Floats]:
    """Select rows and ask for them: features and labels of all parties."""
    server.told_by_all(selection, Ready)
    replies = server.told_by_all(AskColumns(with_label=True), Columns)
    return {
        party: reply.features if reply.labels is None else np.column_stack([reply.features, reply.labels])
        for party, reply in replies.items()
    }


def all_rows(server: HostileServer) -> dict[str, Floats]:
    """Ask for them by an honest sheet."""
    server.new_run(task=TASK, sampler=cn.AllRows(), solver=CENTRAL)
    return tables(server, UseAllRows())


def test_without_a_policy_no_party_starts(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties()):
        file = tmp_path / "party1.toml"
        lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if not line.startswith("policy")))
    with pytest.raises(InputError, match="no party starts without a policy"):
        read_party_file(file)


def test_at_the_usual_level_no_large_table_is_told_in_a_day(tmp_path: Path) -> None:
    most = DAY_LIMITS["usual"]["rows"]
    with hostile_server(tmp_path, made_parties(most + 1)) as server:
        turned_away(lambda: all_rows(server), f"limits replies to {most:,} rows a day")
        assert server.disclosed() == set()


def test_windows_of_a_large_table_are_judged_by_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first would be within a day's rows, and so would each of them."""
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    monkeypatch.setattr(central, "AT_ONCE", BLOCK_ROWS)
    n_rows = max(DAY_LIMITS["usual"]["rows"] + 1, 2 * BLOCK_ROWS)
    with hostile_server(tmp_path, made_parties(n_rows)) as server:
        server.new_run(task=TASK, sampler=cn.AllRows(), solver=CENTRAL)
        widest = max(card.n_features for card in server.roster.cards) + 1
        server.told_by_all(UseAllRows(), Ready)
        window = AskColumnWindow(with_label=True, first=0, stop=BLOCK_ROWS, n_columns=widest)
        turned_away(lambda: server.told_by_all(window, Columns), "rows a day")
        assert server.disclosed() == set()


def test_windows_are_judged_by_all_of_them_where_the_first_has_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A party in league with the server holds out the first window, which then tells nothing, and costs nothing."""
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    monkeypatch.setattr(central, "AT_ONCE", BLOCK_ROWS)
    n_rows = 3 * BLOCK_ROWS + 100
    X, marks = np.random.default_rng(0).normal(size=(n_rows, 3)), np.arange(n_rows) < BLOCK_ROWS
    parties = [cn.Party("a", X[:, :1], split=marks), cn.Party("b", X[:, 1:2]), cn.Party("c", X[:, 2:], label=X.sum(1))]
    policy = {"level": "usual", "rows_a_day": BLOCK_ROWS + 10, "numbers_a_day": 10**9}
    with hostile_server(tmp_path, parties, policy=policy) as server:
        split = cn.SplitBy("a")
        server.new_run(task=TASK, sampler=cn.AllRows(), solver=CENTRAL, split=split)
        server.play_until(learn(TASK, cn.AllRows(), CENTRAL, split, server.roster, 0), AskColumnWindow)
        windows = [
            AskColumnWindow(True, first, min(first + BLOCK_ROWS, n_rows), 2) for first in range(0, n_rows, BLOCK_ROWS)
        ]
        assert len(server.told("c", windows[0], Columns).features) == 0
        for window in windows[1:]:
            assert isinstance(server.ask("c", window), Refused)
        turned_away(
            lambda: server.told("c", windows[1], Columns), rf"with those that follow it {n_rows - BLOCK_ROWS:,}\. Ask"
        )
        assert server.rows_disclosed() == 0


@pytest.mark.xfail(strict=True, reason="the rows of a day are all rows of a smaller table")
def test_at_the_usual_level_no_small_table_is_told_in_a_day(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: all_rows(server), "rows a day")


def test_what_is_told_at_the_usual_level_is_in_the_log(tmp_path: Path) -> None:
    """An honest job shows the drawn rows; the owner finds job, rows and numbers."""
    with hostile_server(tmp_path, made_parties()) as server:
        sampler = cn.UniformSampling(20)
        server.honestly(
            learn(TASK, sampler, CENTRAL, None, server.roster, 0), "fit", task=TASK, sampler=sampler, solver=CENTRAL
        )
        log = server.log_of("party1")
    opened = next(line for line in log if line["event"] == "run opened" and line["verb"] == "fit")
    assert (opened["task"], opened["sampler"], opened["solver"]) == ("regression", "uniform", "central")
    told = next(line for line in log if line.get("reply") == "Columns")
    assert (told["reveals"], told["rows"], told["numbers"]) == (["features"], 20, 60)


def for_no_task(server: HostileServer) -> None:
    """A sheet without a task."""
    server.new_run(task=None, sampler=cn.AllRows(), solver=CENTRAL)


def for_no_task_of_a_model(server: HostileServer) -> None:
    """A sheet that applies a model, which needs no task."""
    model = cn.LinearModel(np.zeros(10), 0.0, server.roster.feature_names)
    server.new_run("predict", model=model)


def for_no_task_of_rows(server: HostileServer) -> None:
    """A sheet that draws rows by scores, without a task."""
    server.new_run("coreset", sampler=cn.ImportanceSampling(40))


def for_another_task(server: HostileServer) -> None:
    """A sheet of a task that the owner does not allow."""
    all_rows(server)


def without_a_sheet(server: HostileServer) -> None:
    """A run that nothing opened."""
    server.begin()
    tables(server, UseAllRows())


def by_another_solver(server: HostileServer) -> None:
    """A sheet for k-means by DistDim, and Central's question for labels."""
    server.new_run(task=cn.KMeans(n_clusters=2), sampler=cn.AllRows(), solver=cn.DistDim())
    tables(server, UseAllRows())


def with_labels(server: HostileServer) -> None:
    """A sheet for k-means by Central, and labels besides."""
    server.new_run(task=cn.KMeans(n_clusters=2), sampler=cn.AllRows(), solver=CENTRAL)
    tables(server, UseAllRows())


def of_other_rows(server: HostileServer) -> None:
    """A sheet for 20 rows drawn evenly, and a list of rows in their place."""
    server.new_run(task=cn.KMeans(n_clusters=2), sampler=cn.UniformSampling(20), solver=CENTRAL)
    tables(server, UseRows(sendable_rows([3, 3, 17])))


def of_more_rows(server: HostileServer) -> None:
    """The same, and 500 rows drawn evenly."""
    server.new_run(task=cn.KMeans(n_clusters=2), sampler=cn.UniformSampling(20), solver=CENTRAL)
    tables(server, UseSharedDraw(500, 0, distinct=True))


def by_many_clusters(server: HostileServer) -> None:
    """As many clusters as rows at a party: each centre is a row, and each row says which it is."""
    server.new_run(task=cn.KMeans(n_clusters=2), sampler=cn.AllRows(), solver=cn.DistDim())
    server.told("party1", UseAllRows(), Ready)
    server.told("party1", AskLocalClusters(N_ROWS, 0, None), LocalClusters)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (for_no_task, "a job sheet lacks `task`"),
        (for_no_task_of_a_model, "applies only models that it helped to learn"),
        (for_no_task_of_rows, "a job sheet lacks `task`"),
        (for_another_task, "allows the tasks kmeans, not 'regression'"),
        (without_a_sheet, "Hello, AskKeyCard, OpenJob would be next in this job, not UseAllRows"),
        (by_another_solver, "AskLocalClusters would be next in this job, not AskColumns"),
        (with_labels, "the job sheet says False where this AskColumns has with_label = True"),
        (of_other_rows, "UseSharedDraw would be next in this job, not UseRows"),
        (of_more_rows, "the job sheet says 20 where this UseSharedDraw has count = 500"),
        (by_many_clusters, "the job sheet says 2 where this AskLocalClusters has n_clusters = 100"),
    ],
)
def test_a_run_tells_what_its_sheet_entails(tmp_path: Path, attack: Callable[[HostileServer], None], why: str) -> None:
    with hostile_server(tmp_path, made_parties(), {"tasks": ["kmeans"]}) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() == set()


@pytest.mark.parametrize("solver", [cn.Central(), cn.DistDim(), cn.Saga(), cn.SecureLloyd()])
def test_at_the_strict_level_only_gram_matrices_are_told(tmp_path: Path, solver: object) -> None:
    task = cn.Regression() if isinstance(solver, cn.Central | cn.Saga) else cn.KMeans(n_clusters=2)
    with hostile_server(tmp_path, made_parties(), {"level": "strict"}) as server:
        turned_away(lambda: server.new_run(task=task, sampler=cn.AllRows(), solver=solver), "allows the solvers gram")
        gram = cn.SecureGram()
        script = learn(TASK, cn.AllRows(), gram, None, server.roster, 0)
        server.honestly(script, "fit", task=TASK, sampler=cn.AllRows(), solver=gram)
        assert server.disclosed() == {Reveals.MOMENTS}
        assert server.rows_disclosed() == 0
