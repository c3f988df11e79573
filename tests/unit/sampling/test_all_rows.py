"""All rows that count, of tables of any number: nobody lists them where nobody needs a list."""

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade import run as runs
from colonnade import storage
from colonnade.coreset import selection_of
from colonnade.kernels import per_row
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.kernels.per_row import PerRow, numbers_in
from colonnade.kernels.selections import CountedRows
from colonnade.number_words import count
from colonnade.protocol.splits import counted, held_out_by_seed
from colonnade.report import learned
from colonnade.solvers import distdim
from colonnade.solvers.gram import question
from colonnade.solvers.lloyd import server as lloyd
from colonnade.solvers.saga import server as saga
from computed_table import computed_federation

RNG = np.random.default_rng(0)
N = 300
X, Y, WEIGHTS, MARKS = RNG.normal(size=(N, 3)), RNG.normal(size=N), RNG.integers(0, 3, size=N) / 2, RNG.random(N) < 0.3
TASK = cn.Regression(l2=0.1)


def federation(*, weighted: bool = False) -> cn.Federation:
    return cn.Federation(
        [
            cn.Party("first", X[:, :1], weight=WEIGHTS if weighted else None),
            cn.Party("second", X[:, 1:2], split=MARKS),
            cn.Party("third", X[:, 2:], label=Y),
        ]
    )


def counted_by(split: Any, *, weighted: bool) -> Any:
    own = WEIGHTS if weighted else np.ones(N)
    if isinstance(split, cn.HoldOut):
        return own * np.asarray(counted(N, "train", split, None, None))
    return own * ~MARKS if split else own


SPLITS = [None, cn.HoldOut(0.25, seed=3), cn.SplitBy("second")]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("weighted", [False, True])
def test_they_are_the_rows_that_count_by_what_they_count(tmp_path: Path, split: Any, weighted: bool) -> None:
    expected = counted_by(split, weighted=weighted)
    run = federation(weighted=weighted).coreset(TASK, cn.AllRows(), split=split)
    for coreset in (run.coreset, cn.Run.load(run.save(tmp_path / "run")).coreset):
        assert len(coreset) == coreset.n_distinct == np.count_nonzero(expected)
        assert coreset.total_weight == coreset.weight_sum == expected.sum()
        assert coreset.largest_weight == expected.max()
        assert coreset.effective_size == pytest.approx(expected.sum() ** 2 / np.square(expected).sum(), rel=1e-14)
        np.testing.assert_array_equal(coreset.rows, np.flatnonzero(expected))
        np.testing.assert_array_equal(coreset.weights, expected[expected > 0])
        assert not coreset.rows.flags.writeable
        assert not coreset.weights.flags.writeable
        assert coreset.sampler == "AllRows()"


@pytest.mark.parametrize("policy", [{}, {"level": "usual"}])
@pytest.mark.parametrize("split", SPLITS[:2])
def test_nobody_holds_anything_of_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: Any, policy: Any
) -> None:
    """Below an eighth of a byte a row, whatever a run is asked and wherever it is saved."""
    monkeypatch.setattr(per_row, "KEPT_ROWS", 0)
    for n_rows in (100, 1 << 23):  # once for what is imported
        large = computed_federation(n_rows, **policy)
        tracemalloc.start()
        run = large.coreset(TASK, cn.AllRows(), split=split)
        told = f"{run.diagnostics} {run} {run.coreset!r} {run.coreset._repr_html_()}"
        _, peak = tracemalloc.get_traced_memory()
        page = run.report(tmp_path / "page.html").read_text()
        _, peak_of_page = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < n_rows / 8
    assert peak_of_page < n_rows / 2, "2 MB of any number of rows"
    assert f"{len(run.coreset):,}" in told
    assert "none stands for others. Each has weight 1." in " ".join(re.sub("<[^>]*>", " ", page).split())
    assert not {"rows", "weights"} & run.coreset.__dict__.keys()


@pytest.mark.parametrize(
    ("split", "weighted", "is_listed"),
    [(None, False, False), (SPLITS[1], False, False), (SPLITS[2], False, True), (None, True, True)],
)
def test_a_saved_run_lists_them_only_where_a_column_chose_them(
    tmp_path: Path, split: Any, weighted: bool, is_listed: bool
) -> None:
    run = federation(weighted=weighted).fit(TASK, sampler=cn.AllRows(), split=split)
    path = run.save(tmp_path / "run")
    assert (path / "coreset.arrow").exists() == is_listed
    again = cn.Run.load(path)
    assert again.diagnostics == run.diagnostics
    assert again.summary() == run.summary()
    run.report(tmp_path / "report.html")
    again.report(tmp_path / "again.html")


def test_an_earlier_format_lists_them(tmp_path: Path) -> None:
    run = federation().coreset(TASK, cn.AllRows())
    path = run.save(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, "format": 2}))
    listed = {"row": np.arange(N), "weight": np.ones(N)}
    (path / "coreset.arrow").write_bytes(storage.arrow_bytes(listed))
    again = cn.Run.load(path)
    assert again.diagnostics == run.diagnostics
    np.testing.assert_array_equal(again.coreset.rows, run.coreset.rows)


def test_rows_of_another_runs_split_are_listed(tmp_path: Path) -> None:
    """All rows that counted there are not all that count here."""
    first = federation().coreset(TASK, cn.AllRows(), split=SPLITS[1])
    run = federation().fit(TASK, coreset=first.coreset)
    again = cn.Run.load(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(again.coreset.rows, first.coreset.rows)
    assert len(again.coreset) == 225


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": {"kind": "uniform", "size": 5}}, "No such file"),
        ({"sampler": None}, "No such file"),
        ({"split": {"kind": "column", "party": "second"}}, "a party's column says which rows count"),
        ({"n_rows": (1 << 40) + 1}, "it has 1099511627777 rows, outside"),
        ({"n_rows": 0}, "it has 0 rows, outside"),
        ({"n_rows": -5}, "it has -5 rows, outside"),
        ({"n_rows": 1, "split": {"kind": "fraction", "fraction": 0.9}}, "all of its rows are held out"),
    ],
)
def test_a_run_that_was_tampered_with(tmp_path: Path, changes: Any, message: str) -> None:
    path = federation().coreset(TASK, cn.AllRows()).save(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, **changes}))
    with pytest.raises(cn.InputError, match=message):
        cn.Run.load(path)


@pytest.mark.parametrize("split", SPLITS[:2])
def test_a_file_that_says_it_is_large_fills_neither_memory_nor_time(tmp_path: Path, split: Any) -> None:
    path = federation().fit(TASK, sampler=cn.AllRows(), split=split).save(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps({**record, "n_rows": 1 << 40}))
    run = cn.Run.load(path)
    assert run.diagnostics["distinct_rows"] == (1 << 40 if split is None else 3 << 38)
    assert f"{run.diagnostics['size']:,}" in str(run)
    assert f"All {count(len(run.coreset))} rows that count were taken" in run.report(tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("sampler", "split", "weighted"),
    [
        (cn.AllRows(), SPLITS[2], False),
        (cn.AllRows(), None, True),
        (cn.ImportanceSampling(150), None, False),
    ],
)
def test_a_run_of_more_than_a_file_holds_is_saved_without_its_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: Any, split: Any, weighted: bool
) -> None:
    """Everything else is kept: the job is done, and its model must not be lost."""
    monkeypatch.setattr(runs, "MOST_LISTED", 100)
    run = federation(weighted=weighted).fit(TASK, sampler=sampler, split=split)
    path = run.save(tmp_path / "run")
    assert not (path / "coreset.arrow").exists()
    assert json.loads((path / "run.json").read_text())["unlisted"]["n"] == len(run.coreset) > 100
    again = cn.Run.load(cn.Run.load(path).save(tmp_path / "again"))
    np.testing.assert_array_equal(again.model.coef_, run.model.coef_)
    assert again.diagnostics == run.diagnostics
    assert again.ledger == run.ledger
    assert again.summary() == run.summary()
    assert str(again) == str(run)
    assert again.coreset._repr_html_() == run.coreset._repr_html_()
    again.report(tmp_path / "page.html")
    for name in ("rows", "weights"):
        with pytest.raises(cn.InputError, match=r"saved without its \d+ rows and weights.* Run the job again"):
            getattr(again.coreset, name)
    with pytest.raises(cn.InputError, match="saved without its"):
        federation(weighted=weighted).fit(TASK, coreset=again.coreset)


@pytest.mark.parametrize(
    ("changes", "unlisted", "message"),
    [
        ({}, {"n": 0}, "Expected `int` >= 1"),
        ({}, {"n": 20}, "no rows weigh what these do"),
        ({}, {"weight": 1e300}, "no rows weigh what these do"),
        ({}, {"weight": -1.0}, "Expected `float` > 0"),
        ({}, {"squared_weight": 1e-300}, "no rows weigh what these do"),
        ({}, {"least_weight": 7.0}, "no rows weigh what these do"),
        ({"n_rows": (1 << 40) + 1}, {}, "it has 1099511627777 rows, outside"),
        ({"total_weight": -1.0}, {}, "all of its rows weigh -1"),
    ],
)
def test_a_run_without_its_list_that_was_tampered_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: Any, unlisted: Any, message: str
) -> None:
    monkeypatch.setattr(runs, "MOST_LISTED", 100)
    path = federation(weighted=True).coreset(TASK, cn.AllRows()).save(tmp_path / "run")
    record = json.loads((path / "run.json").read_text())
    record = {**record, **changes, "unlisted": {**record["unlisted"], **unlisted}}
    (path / "run.json").write_text(json.dumps(record))
    with pytest.raises(cn.InputError, match=message):
        cn.Run.load(path)


def test_a_report_sorts_no_more_weights_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = federation(weighted=True).fit(TASK, sampler=cn.AllRows())
    assert "a quarter is below" in run.report(tmp_path / "page.html").read_text()
    run = cn.Run.load(run.save(tmp_path / "run"))
    monkeypatch.setattr(learned, "MOST_SORTED", 100)
    page = run.report(tmp_path / "page.html").read_text()
    assert "a quarter is below" not in page
    assert "Weights go from 0.5 to 1." in page


def test_more_than_a_message_lists_are_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    coreset = federation().coreset(TASK, cn.AllRows()).coreset
    monkeypatch.setattr("colonnade.validation.MAX_NUMBERS", 299)
    with pytest.raises(cn.InputError, match=r"300 rows, and 299 are the most .* pass sampler=AllRows\(\)"):
        federation().fit(TASK, coreset=coreset)
    assert "rows" not in coreset.__dict__, "nothing was listed for it"


@pytest.mark.parametrize(
    ("module", "most", "solver", "task"),
    [
        (question, 200 * 2 * 4, cn.SecureGram(), cn.Regression(l2="cv")),
        (saga, 200, cn.Saga(), TASK),
        (distdim, 200, cn.DistDim(), cn.KMeans(2)),
        (lloyd, 200, cn.SecureLloyd(), cn.KMeans(1, n_starts=1)),
    ],
)
def test_a_solver_that_takes_fewer_says_so(
    monkeypatch: pytest.MonkeyPatch, module: Any, most: int, solver: Any, task: Any
) -> None:
    monkeypatch.setattr(module, "MAX_NUMBERS", most)
    with pytest.raises(cn.InputError, match=r"takes 200 rows at most,.* and these are 300.*Draw a coreset"):
        federation().fit(task, sampler=cn.AllRows(), solver=solver)


@pytest.mark.parametrize("solver", [cn.Central(), cn.CompactCentral(), cn.SecureGram(), cn.Saga()])
def test_listed_rows_give_the_same_model(solver: Any) -> None:
    """Whoever needs a list makes it of what was not listed: all rows that were listed before are the same."""
    run = federation().fit(TASK, sampler=cn.AllRows(), solver=solver)
    listed = cn.Coreset(np.arange(N), np.ones(N), N, float(N), "AllRows()")
    again = federation().fit(TASK, coreset=listed, solver=solver)
    np.testing.assert_array_equal(run.model.coef_, again.model.coef_)
    assert {**run.diagnostics} == {**again.diagnostics}


def test_a_coreset_has_no_other_attributes() -> None:
    coreset = federation().coreset(TASK, cn.AllRows()).coreset
    with pytest.raises(AttributeError, match="'Coreset' object has no attribute 'row'"):
        _ = coreset.row
    listed = cn.Coreset(np.arange(2), np.ones(2), 5, 5.0)
    assert isinstance(selection_of(coreset), CountedRows)
    with pytest.raises(AttributeError, match="no attribute 'weight'"):
        _ = listed.weight


def facts(numbers: PerRow) -> list[float]:
    ways = (numbers.sum, numbers.sum_of_squares, numbers.max, numbers.least_positive)
    return [numbers.n_positive, *(way() for way in ways)]


@pytest.mark.parametrize("side", ["train", "test"])
@pytest.mark.parametrize("n_rows", [1, 7, BLOCK_ROWS, 2 * BLOCK_ROWS + 100])
def test_marks_are_added_up_without_a_look_at_them(monkeypatch: pytest.MonkeyPatch, side: Any, n_rows: int) -> None:
    marks = held_out_by_seed(n_rows, cn.HoldOut(0.4, seed=2), side)
    looked_at = numbers_in(np.asarray(marks))
    assert looked_at.n_ones is None
    expected = facts(looked_at)
    if marks.n_ones:
        monkeypatch.setattr(PerRow, "block_totals", property(lambda _: pytest.fail("it went through all rows")))
    assert facts(marks) == expected


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("side", ["train", "test"])
def test_marks_of_a_column_are_held_as_they_are(side: Any, weighted: bool) -> None:
    """A byte a row, which is there already: no number of eight bytes is made of each."""
    n_rows = 1 << 22
    marks = np.random.default_rng(1).random(n_rows) < 0.3
    expected = marks if side == "test" else ~marks
    weights = np.full(n_rows, 2.0) if weighted else None
    tracemalloc.start()
    found = counted(n_rows, side, cn.SplitBy("second"), marks, weights)
    assert found is not None
    assert found.n_positive == np.count_nonzero(expected)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n_rows
    np.testing.assert_array_equal(found, expected * (2.0 if weighted else 1.0))
