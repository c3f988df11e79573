"""Parties that prepare their columns, beside all else that they may have: keys, weights, marks, policies, labels."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import colonnade as cn
from whole_tables import held

N = 300
RULES = cn.Prepare({"job": cn.Category(), "age": cn.Number(missing="median")})
TASK, ALL = cn.Regression(), cn.AllRows()


def bank() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    jobs = rng.choice(["clerk", "driver", "nurse"], size=N, p=[0.5, 0.3, 0.2])
    age = np.where(rng.random(N) < 0.1, np.nan, rng.integers(18, 80, size=N))
    weight = rng.integers(0, 4, size=N).astype(float)
    return pd.DataFrame({"id": np.arange(N), "job": jobs, "age": age, "weight": weight, "late": np.arange(N) >= 240})


def shop() -> pd.DataFrame:
    rng, table = np.random.default_rng(1), bank()
    visits = rng.poisson(5, size=N).astype(float)
    spent = 3 * visits + table["age"].fillna(40) + 10 * (table["job"] == "nurse") + rng.normal(size=N)
    return pd.DataFrame({"id": [f" {i}" for i in range(N)], "visits": visits, "spent": spent})


def by_hand(table: pd.DataFrame, learned: pd.DataFrame) -> pd.DataFrame:
    """Make the columns of RULES and the visits, with what is learned from some rows."""
    common = learned["job"].value_counts().index[0]
    levels = [level for level in sorted(learned["job"].unique()) if level != common]
    made = {f"job={level}": table["job"] == level for level in levels}
    filled = table["age"].fillna(learned["age"].median())
    return pd.DataFrame(made | {"age": filled, "age is missing": table["age"].isna(), "visits": table["visits"]})


def fitted(learned: pd.DataFrame) -> LinearRegression:
    return LinearRegression().fit(by_hand(learned, learned), learned["spent"])


def whole() -> pd.DataFrame:
    return bank().merge(shop().drop(columns="id"), left_index=True, right_index=True)


@pytest.mark.parametrize("mode", ["aided", "curve"])
def test_records_are_aligned_first(mode: Any) -> None:
    """Rows that not all have are not learned from: neither by the model nor by the rules."""
    first, second = bank().sample(frac=1, random_state=0)[:250], shop().sample(frac=1, random_state=1)[:250]
    parties = [
        cn.Party("bank", first[["id", "job", "age"]], key="id", prepare=RULES),
        cn.Party("shop", second, key="id", label="spent"),
    ]
    run = cn.Federation(parties, align=mode).fit(TASK, sampler=ALL)
    common = whole().loc[sorted(set(first.index) & set(second.index))]
    assert 200 < len(common) < 250
    assert np.allclose(run.model.coef_, fitted(common).coef_, rtol=1e-8)


def test_marks_of_a_party_say_what_is_learned_from() -> None:
    parties = [
        cn.Party("bank", bank(), prepare=RULES, split="late"),
        cn.Party("shop", shop(), label="spent", key="id"),
    ]
    federation = cn.Federation(parties)
    run = federation.fit(TASK, sampler=ALL, split=cn.SplitBy("bank"))
    early, late = whole()[:240], whole()[240:]
    model = fitted(early)
    assert np.allclose(run.model.coef_, model.coef_, rtol=1e-8)
    error = np.mean(np.square(model.predict(by_hand(late, early)) - late["spent"]))
    assert federation.evaluate(run.model, split=run.split).mse == pytest.approx(error, rel=1e-8)


def test_rows_of_weight_k_teach_as_k_copies_and_those_that_weigh_nothing_nothing() -> None:
    parties = [
        cn.Party("bank", bank(), prepare=RULES, weight="weight"),
        cn.Party("shop", shop(), label="spent", key="id"),
    ]
    run = cn.Federation(parties).fit(TASK, sampler=ALL)
    copies = whole().loc[np.repeat(np.arange(N), bank()["weight"].astype(int))]
    assert copies["age"].median() != whole()["age"].median()
    assert np.allclose(run.model.coef_, fitted(copies).coef_, rtol=1e-8)


def test_the_label_party_may_prepare_too_and_its_label_is_as_it_is() -> None:
    rules = cn.Prepare({"visits": cn.Number(scale=True)})
    parties = [cn.Party("bank", bank(), prepare=RULES), cn.Party("shop", shop(), label="spent", prepare=rules)]
    run = cn.Federation(parties).fit(TASK, sampler=ALL)
    model, deviation = fitted(whole()), shop()["visits"].std(ddof=0)
    assert np.allclose(run.model.coef_, model.coef_ * [1, 1, 1, 1, deviation], rtol=1e-8)


def test_a_party_with_a_label_only_learns_from_others_that_prepare() -> None:
    parties = [
        cn.Party("bank", bank(), prepare=RULES),
        cn.Party("desk", shop()[["visits"]]),
        cn.Party("shop", shop()[["spent"]], label="spent"),
    ]
    run = cn.Federation(parties).fit(TASK, sampler=ALL)
    assert np.allclose(run.model.coef_, fitted(whole()).coef_, rtol=1e-8)


def test_a_policy_decides_what_rules_may_reach() -> None:
    """A pattern takes what the owner lets in; a name that the owner keeps out is an error, not a silence."""
    open_to_all = cn.Prepare({"*": cn.Number(missing="mean"), "job": cn.Category()})
    kept = cn.Party("bank", bank(), key="id", prepare=open_to_all, policy=cn.Policy(never_columns=["age", "late"]))
    assert kept.table.feature_names == ("job", "weight")
    chosen = cn.Policy(columns=["id", "job"])
    assert cn.Party("bank", bank(), key="id", prepare="auto", policy=chosen).table.feature_names == ("job",)
    with pytest.raises(cn.InputError, match=r"Party 'bank'.*'age'"):
        cn.Party("bank", bank(), key="id", prepare=RULES, policy=cn.Policy(never_columns=["age"]))


def both(first: Any, second: pd.DataFrame, prepare: Any = RULES) -> cn.Federation:
    return cn.Federation([cn.Party("bank", first, prepare=prepare), cn.Party("shop", second, label="spent", key="id")])


def test_a_single_new_row_is_prepared_by_what_was_learned() -> None:
    """There is no median of no value, and none is needed."""
    run = both(bank(), shop()).fit(TASK, sampler=ALL)
    row = bank()[:1].assign(age=np.nan, job="nurse")
    expected = fitted(whole()).predict(by_hand(whole()[:1].assign(age=np.nan, job="nurse"), whole()))
    assert np.allclose(both(row, shop()[:1]).predict(run.model), expected, rtol=1e-8)
    with pytest.raises(cn.InputError, match="no row that counts has a value, so there is no median"):
        both(row, shop()[:1]).fit(TASK, sampler=ALL)


@pytest.mark.parametrize("n_new", [1, 5])
def test_new_rows_are_prepared_as_auto_chose_for_those_that_were_learned_from(n_new: int) -> None:
    """Of five rows a job looks like an id, and of one row nothing can enter."""
    table = bank()[["job", "age"]]
    run = both(table, shop(), "auto").fit(TASK, sampler=ALL)
    new, visits = table[-n_new:].reset_index(drop=True), shop()[-n_new:]
    expected = fitted(whole()).predict(by_hand(whole()[-n_new:], whole()))
    assert np.allclose(both(new, visits, "auto").predict(run.model), expected, rtol=1e-8)


def test_auto_that_finds_no_column_is_refused_where_something_is_learned(capsys: pytest.CaptureFixture[str]) -> None:
    federation = both(bank()[["job", "age"]][:1], shop()[:1], "auto")
    assert "Party 'bank': prepare='auto' found no column that could enter" in capsys.readouterr().err
    with pytest.raises(
        cn.InputError, match=r"Party 'bank': prepare='auto' found no column that could enter \(job: left"
    ):
        federation.fit(TASK, sampler=ALL)


@pytest.mark.parametrize(
    ("column", "rule", "value", "match"),
    [
        ("age", cn.Number(missing="median"), "12k", r"column 'age', row 250 \(rows count from 0\): '12k' is text"),
        ("age", cn.Number(), None, r"column 'age': \d+ of 300 values are missing, the first in row \d+ "),
        ("age", cn.Number(missing=0.0, log=True), "-2", r"column 'age', row 250 .*-2 has no log"),
        ("age", cn.Category(missing="level"), "1.5", r"column 'age', row 250 .*1.5 is no level"),
        ("job", cn.Category(), None, "column 'job': 1 of 300 values are missing, the first in row 250"),
        ("job", cn.Date(), "2024-02-30", "column 'job', row 0 .*cannot be read as a date"),
    ],
)
def test_what_is_wrong_with_a_value_is_said_at_the_door(column: str, rule: Any, value: Any, match: str) -> None:
    table = bank()
    values = table[column].tolist()
    values[250] = value if value in (None, "12k") or column == "job" else float(value)
    if value == "12k":
        values = [None if each != each else str(each) for each in values]
    table[column] = pd.Series(values)
    with pytest.raises(cn.InputError, match=f"Party 'bank': {match}"):
        cn.Party("bank", table, prepare=cn.Prepare({column: rule}))


@pytest.mark.parametrize(
    ("text", "rules", "match"),
    [
        ("12k", {"age": cn.Number()}, r"column 'age', row 1 \(line 5 of bank.csv\): '12k' is text"),
        (
            "",
            {"age": cn.Number()},
            r"column 'age': 1 of 3 values are missing, the first in row 1 \(line 5 of bank.csv\). Fill",
        ),
        (
            "",
            {"age": cn.Category()},
            r"column 'age': 1 of 3 values are missing, the first in row 1 \(line 5 of bank.csv\). Fill",
        ),
        ("30.2.2020", {"age": cn.Date()}, r"column 'age', row 0 \(line 2 of bank.csv\): '1' cannot be read as a date"),
    ],
)
def test_a_bad_value_of_a_file_is_told_with_its_line(text: str, rules: Any, match: str, tmp_path: Path) -> None:
    (tmp_path / "bank.csv").write_text(f'age,note\n1,"two\nlines"\n\n{text},x\n3,y\n')
    with pytest.raises(cn.InputError, match=f"Party 'bank': {match}"):
        cn.Party("bank", tmp_path / "bank.csv", prepare=cn.Prepare(rules))


@pytest.mark.parametrize("is_gone", [False, True])
def test_rows_of_a_job_are_told_as_they_were_read(is_gone: bool, tmp_path: Path) -> None:
    """By the line of the file though rows are in another order; by the row where the file is gone."""
    path = tmp_path / "bank.csv"
    path.write_text("id,x\n" + "".join(f"{row},{row}\n" for row in range(5)))
    rules = cn.Prepare({"x": cn.Category(rare=1, unknown="error")})
    columns = cn.Party("bank", path, key="id", prepare=rules).table.preparing
    assert columns is not None
    learned = columns.take(np.arange(4)).fitted(None)
    if is_gone:
        path.unlink()
    where = r"row 4 \(rows count from 0\)" if is_gone else r"row 4 \(line 6 of bank.csv\)"
    with pytest.raises(cn.InputError, match=f"Party 'bank': column 'x', {where}: the level '4' was not there"):
        columns.take(np.array([4, 0])).applied(learned)


def test_a_table_is_written_once_beside_its_label() -> None:
    n_rows, names = 20_000, [f"x{i}" for i in range(40)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 41)), columns=[*names, "y"])
    party = cn.Party("bank", frame, label="y", prepare=cn.Prepare({"x*": cn.Number()}))
    content = party.table.preparing.fitted(None)  # type: ignore[union-attr]
    tracemalloc.start()
    table = party.table.prepared(content)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.array_equal(held(table), frame.to_numpy())
    assert held(table).flags.f_contiguous
    assert most < 1.5 * held(table).nbytes


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_files_are_prepared_as_frames_are(ending: str, tmp_path: Path) -> None:
    path, table = tmp_path / f"bank.{ending}", bank()[["job", "age"]]
    if ending == "csv":
        table.to_csv(path, index=False)
    elif ending == "parquet":
        table.to_parquet(path)
    else:
        table.to_feather(path)
    runs = [
        cn.Federation([cn.Party("bank", data, prepare=RULES), cn.Party("shop", shop(), label="spent", key="id")]).fit(
            TASK, sampler=cn.ImportanceSampling(size=100), seed=0
        )
        for data in (table, path)
    ]
    assert np.array_equal(runs[0].model.coef_, runs[1].model.coef_)
    assert runs[0].model.learned_from_ == runs[1].model.learned_from_


def test_auto_says_what_it_chose_and_reads_no_role(capsys: pytest.CaptureFixture[str]) -> None:
    party = cn.Party("bank", bank(), key="id", weight="weight", split="late", prepare="auto")
    assert party.table.feature_names == ("job", "age")
    said = capsys.readouterr().err
    assert "job: category, 3 levels" in said
    assert "age: number" in said
    assert "late" not in said


def test_rules_that_changed_hold_for_the_next_fit_and_a_model_needs_its_columns_still() -> None:
    desk = cn.Party("shop", shop(), label="spent", key="id")

    def with_rules(**rules: Any) -> cn.Federation:
        return cn.Federation([cn.Party("bank", bank(), prepare=cn.Prepare(rules)), desk])

    before = with_rules(job=cn.Category(), age=cn.Number(missing="median"))
    run = before.fit(TASK, sampler=ALL)
    after = with_rules(job=cn.Category(), age=cn.Number(missing=0, log=True))
    assert np.array_equal(after.predict(run.model), before.predict(run.model))
    assert not np.allclose(after.fit(TASK, sampler=ALL).model.coef_, run.model.coef_)
    with pytest.raises(cn.InputError, match=r"Party 'bank'.*there is no column 'age', which was prepared"):
        with_rules(job=cn.Category()).predict(run.model)


def test_levels_are_told_by_weights_only_where_each_has_enough_rows() -> None:
    """The model goes on without their names, here and in scikit-learn."""
    desk, told = shop().assign(w=10.0), cn.Prepare({"job": cn.Category()}, tell_levels=True)
    names = []
    for n_painters in (9, 10):
        table = bank().assign(job=["painter"] * n_painters + ["clerk"] * 100 + ["driver"] * (N - 100 - n_painters))
        parties = [cn.Party("bank", table, prepare=told), cn.Party("shop", desk, key="id", label="spent", weight="w")]
        run = cn.Federation(parties).fit(TASK, sampler=ALL)
        names.append(run.model.feature_names_in_)
        found = run.model.to_sklearn().predict(table[["job"]].join(desk[["visits"]]))
        assert np.allclose(found, cn.Federation(parties).predict(run.model), rtol=1e-10)
    assert names == [("job#1", "job#2", "visits"), ("job=clerk", "job=painter", "visits")]
