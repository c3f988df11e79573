from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.errors import InputError
from colonnade.paper import runner
from colonnade.paper.data_sets.data_set import DataSet
from colonnade.paper.design import Experiment, Part
from colonnade.paper.runner import Settings, plan, run
from colonnade.paper.store import Store, key
from colonnade.paper.trials import Trial, read_trials
from colonnade.paper.variants import AS_RUN, AS_WRITTEN

PART = Part("plain", cn.Regression(), "made up", (2, 2), ("Central",), (30, 60, 90))
SMALL = Experiment("small", (PART,))
SETTINGS = Settings(AS_WRITTEN, repeats=3)


def load(_part: Part, _quick: bool) -> DataSet:
    rng = np.random.default_rng(0)
    return DataSet("made up", rng.normal(size=(200, 4)), rng.normal(size=200), 200)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """List what is really learned."""
    made: list[str] = []
    original: Callable[..., Trial] = runner._trial

    def watched(*arguments: object) -> Trial:
        trial = original(*arguments)
        made.append(trial.method)
        return trial

    monkeypatch.setattr(runner, "_trial", watched)
    return made


def test_every_cell_is_there(tmp_path: Path) -> None:
    trials = list(run(SMALL, SETTINGS, load, Store(tmp_path / "results.jsonl")))
    assert len(trials) == len(plan(SMALL, SETTINGS)) == 1 + 2 * 3 * 3
    assert len({key(trial) for trial in trials}) == len(trials)
    assert read_trials(tmp_path / "results.jsonl") == trials
    assert trials[0].size == 200


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, computed: list[str]) -> None:
    path = tmp_path / "results.jsonl"
    unbroken = list(run(SMALL, SETTINGS, load, Store(tmp_path / "other.jsonl")))
    computed.clear()
    interrupted = run(SMALL, SETTINGS, load, Store(path))
    for _ in range(7):
        next(interrupted)
    with path.open("ab") as file:
        file.write(b'{"experiment":"small","ta')  # torn off
    trials = list(run(SMALL, SETTINGS, load, Store(path)))
    assert len(computed) == len(unbroken)
    assert [key(trial) for trial in read_trials(path)] == [key(trial) for trial in unbroken]
    assert [trial.cost for trial in trials] == [trial.cost for trial in unbroken]


def test_more_sizes_and_repeats_change_no_other_cell(tmp_path: Path) -> None:
    few = replace(SMALL, parts=(replace(PART, sizes=(30, 90)),))
    before = {key(t): t.cost for t in run(few, Settings(AS_WRITTEN, 2), load, Store(tmp_path / "a.jsonl"))}
    after = {key(t): t.cost for t in run(SMALL, SETTINGS, load, Store(tmp_path / "b.jsonl"))}
    assert before.items() < after.items()


def test_another_seed_gives_other_draws(tmp_path: Path) -> None:
    store = Store(tmp_path / "results.jsonl")
    first, second = (
        [t.cost for t in run(SMALL, replace(SETTINGS, seed=seed), load, store) if t.method != "Central"]
        for seed in (0, 1)
    )
    assert not set(first) & set(second)


def test_the_fit_of_all_rows_is_shared_by_the_variants(tmp_path: Path, computed: list[str]) -> None:
    store = Store(tmp_path / "results.jsonl")
    written, ran = (list(run(SMALL, replace(SETTINGS, variant=v), load, store)) for v in (AS_WRITTEN, AS_RUN))
    assert computed.count("Central") == 1
    assert (written[0].cost, ran[0].variant) == (ran[0].cost, "as-run")


def test_a_broken_results_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text("nonsense\n")
    with pytest.raises(InputError, match="Move it away"):
        Store(tmp_path / "results.jsonl")
