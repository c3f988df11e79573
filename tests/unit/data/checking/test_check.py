"""What a check finds, and that it says of a table what a party that starts with it would say."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from colonnade.data.checking.check import Check, Preparing, check_table
from colonnade.data.checking.findings import ORDER, Finding
from colonnade.data.parties import Party
from colonnade.data.sources import Roles
from colonnade.errors import InputError
from colonnade.preparation.rules import Category, Number, Prepare, Rule
from colonnade.protocol.policy import Policy

N = 300
RNG = np.random.default_rng(0)
CLEAN: dict[str, Any] = {
    "customer": [f"c{i}" for i in range(N)],
    "income": RNG.normal(50, 9, N),
    "age": RNG.normal(40, 5, N),
    "spending": RNG.normal(9, 2, N),
}


def checked(
    prepare: Preparing = "auto", policy: Policy | None = None, show_keys: bool = False, **columns: Any
) -> Check:
    """Check a clean table with some columns in place of its own, or beside them, or taken out by None."""
    data = {name: values for name, values in {**CLEAN, **columns}.items() if values is not None}
    roles = Roles("spending", "customer")
    return check_table("bank", pa.table(data), roles, prepare, policy or Policy(level="open"), show_keys=show_keys)


def kinds(check: Check) -> list[str]:
    return [each.kind for each in check.findings]


def the(check: Check, kind: str) -> Finding:
    (finding,) = [each for each in check.findings if each.kind == kind]
    assert finding.words
    assert finding.advice
    return finding


def with_gaps(*rows: int) -> list[float | None]:
    return [None if i in rows else float(value) for i, value in enumerate(CLEAN["age"])]


@pytest.mark.parametrize("prepare", ["auto", None, Prepare({"income": Number(), "age": Number()})])
def test_a_clean_table_has_nothing_to_report(prepare: Preparing) -> None:
    check = checked(prepare)
    assert check.starts
    assert check.findings == ()
    assert (check.rows, check.prepared_columns, check.roles) == (N, 2, {"customer": "key", "spending": "label"})


def test_missing_values_stop_a_party_where_its_rule_says_so() -> None:
    age = with_gaps(4, 17)
    stopped = checked(None, age=age)
    assert not stopped.starts
    assert the(stopped, "missing").rows == (4, 17)
    assert "row 4" in the(stopped, "missing").words
    assert checked(Prepare({"age": Number(missing="median")}), age=age).starts
    assert "missing" in kinds(checked(Prepare({"age": Number()}), age=age))
    assert (
        'missing = "level"'
        in the(checked(Prepare({"job": Category()}), job=["a", None, *["b"] * (N - 2)]), "missing").advice
    )


def test_gaps_do_not_hide_what_else_is_wrong() -> None:
    check = checked(None, age=with_gaps(4), again=CLEAN["income"], flat=np.ones(N))
    assert kinds(check) == ["missing", "repeated", "constant", "no-rules"]
    assert check.findings[0].severity == "stops"


def test_the_worst_comes_first() -> None:
    check = checked(None, age=with_gaps(4), flat=np.ones(N), customer=[f" C{i}" for i in range(N)])
    order = [ORDER.index(each.severity) for each in check.findings]
    assert order == sorted(order)
    assert set(order) == {0, 1, 2}


def test_text_without_a_rule_stops_a_party_and_rules_are_advised() -> None:
    check = checked(None, job=["clerk", "cook", "nurse"] * (N // 3))
    assert not check.starts
    assert the(check, "unprepared").columns == ("job",)
    assert "colonnade new party" in the(check, "no-rules").advice


def test_what_a_rule_names_is_there() -> None:
    check = checked(Prepare({"incom": Number(), "age": Number(), "zz*": Number()}))
    assert [each.columns for each in check.findings if each.kind == "rule"] == [("incom",), ("zz*",)]
    assert "Did you mean 'income'?" in check.findings[0].advice
    assert check.prepared_columns == 1, "the others are looked at all the same"


def test_roles_name_columns_that_are_there() -> None:
    check = check_table("bank", pa.table(CLEAN), Roles("spendin", "customr"), None, Policy(level="open"))
    assert kinds(check)[:2] == ["no-such-column", "no-such-column"]
    assert not check.starts


def test_who_waits_is_told_what_is_under_way() -> None:
    told: list[str] = []
    table = pa.table({"a": [1.0, 2.0, 4.0] * 9, "b": [1.0, 5.0, 2.0] * 9})
    check_table("bank", table, Roles(), "auto", Policy(level="open"), tell=told.append)
    assert told == [
        "reading the table",
        "reading the table: 27 rows",
        "comparing columns",
        "looking at column 1 of 2",
        "looking at column 2 of 2",
        "preparing column 1 of 2",
        "preparing column 2 of 2",
        "looking at columns together",
        "looking at key and label",
        "starting as the party would",
    ]


def test_only_columns_that_the_policy_lets_in_are_looked_at() -> None:
    policy = Policy(level="open", never_columns=["age"])
    check = checked(None, policy=policy, age=with_gaps(4))
    assert check.starts
    assert "age" not in [each.name for each in check.columns]
    hidden = checked(None, policy=Policy(level="open", never_columns=["spending"]))
    assert "not-allowed" in kinds(hidden)


def test_near_dependence_names_the_columns_that_take_part() -> None:
    net = 0.7 * CLEAN["income"] - CLEAN["age"] + RNG.normal(0, 0.01, N)
    near = the(checked(net=net, other=RNG.normal(size=N)), "nearly-dependent")
    assert set(near.columns) == {"net", "income", "age"}
    exact = the(checked(net=0.7 * CLEAN["income"] - CLEAN["age"]), "dependent")
    assert set(exact.columns) == {"net", "income", "age"}


def test_a_row_far_out_hides_no_dependence() -> None:
    income = CLEAN["income"].copy()
    income[17] = 9e6
    check = checked(income=income, net=0.7 * CLEAN["income"] + RNG.normal(0, 0.01, N))
    assert set(the(check, "nearly-dependent").columns) == {"net", "income"}
    assert the(check, "outliers").rows == (17,)


def test_a_repeated_column_is_told_once() -> None:
    assert kinds(checked(again=CLEAN["income"])) == ["repeated"]


def test_rows_that_stand_out_are_told_by_number_and_by_key_only_if_asked() -> None:
    income = CLEAN["income"].copy()
    income[[17, 30]] = [9e6, 8e6]
    found = the(checked(income=income), "outliers")
    assert found.rows == (17, 30)
    assert found.columns == ("income",)
    assert "c17" not in found.words
    assert "c17" in the(checked(income=income, show_keys=True), "outliers").words


def test_in_a_small_table_a_row_that_decides_its_own_prediction_stands_out() -> None:
    values = np.random.default_rng(1).normal(size=20)
    assert "outliers" not in kinds(check_table("bank", pa.table({"a": values}), Roles(), None, Policy()))
    values[5] = 100.0
    assert the(check_table("bank", pa.table({"a": values}), Roles(), None, Policy()), "outliers").rows == (5,)


def test_rare_levels_are_no_outliers() -> None:
    job = ["diver"] * 3 + ["cook"] * 150 + ["clerk"] * (N - 153)
    check = checked(job=job)
    assert kinds(check) == ["rare-levels"]
    assert "1 of 3 levels" in check.findings[0].words
    assert "3 in all" in check.findings[0].words
    assert kinds(checked(Prepare({"job": Category(rare=2)}), job=job)) == []


def test_levels_that_are_all_rare_and_levels_that_are_many() -> None:
    few = [f"j{i // 3}" for i in range(N)]
    assert kinds(checked(Prepare({"job": Category()}), job=few)) == ["all-rare"]
    many = [f"j{i // 2}" for i in range(N)]
    assert "many-levels" in kinds(checked(Prepare({"job": Category(rare=1)}), job=many))


def test_numbers_with_decimal_commas() -> None:
    amount = [f"{value:.1f}".replace(".", ",") for value in CLEAN["age"]]
    assert the(checked(amount=amount), "numbers-as-text").columns == ("amount",)


def test_a_key_that_repeats() -> None:
    twice = ["c1", *CLEAN["customer"][1:]]
    check = checked(customer=twice)
    assert not check.starts
    assert check.key is not None
    assert (check.key.repeated, check.key.merged) == (1, 0)
    assert "c1" not in msgspec.json.encode(check).decode()
    kept = check_table(
        "bank", pa.table({**CLEAN, "customer": twice}), Roles(None, "customer", duplicates="first"), None, Policy()
    )
    assert kept.starts


def test_keys_that_repeat_only_without_case_and_blanks() -> None:
    check = checked(customer=[" C1 ", *CLEAN["customer"][1:]])
    assert check.key is not None
    assert (check.key.repeated, check.key.merged) == (1, 1)


def test_keys_written_otherwise_than_compared_are_counted() -> None:
    check = checked(customer=[*[f"C{i} " for i in range(5)], *CLEAN["customer"][5:]])
    assert check.key is not None
    assert check.key.changed == 5
    assert kinds(check) == ["key-rewritten"]


def test_keys_with_gaps_are_a_finding_without_values() -> None:
    check = checked(customer=[None, *CLEAN["customer"][1:]])
    assert the(check, "key-unreadable").severity == "stops"


def test_without_a_key_one_is_suggested() -> None:
    check = check_table("bank", pa.table(CLEAN), Roles(), "auto", Policy(level="open"))
    assert "'customer'" in the(check, "no-key").words


@pytest.mark.parametrize(
    ("labels", "kind", "starts"),
    [
        ([0, 1] * (N // 2), "label-yes-no", True),
        ([7.0] * N, "label-constant", True),
        ([0.0] * 200 + list(range(1, 101)), "label-zeros", True),
        ([None, *range(N - 1)], "label-missing", False),
        (["yes", "no"] * (N // 2), "label-yes-no", True),
        ([" ", "no"] * (N // 2), "label-missing", False),
        ([f"person {i}" for i in range(N)], "label-many", False),
    ],
)
def test_labels(labels: list[Any], kind: str, starts: bool) -> None:
    check = checked(spending=labels)
    assert the(check, kind).columns == ("spending",)
    assert check.starts == starts


def test_the_labels_quantiles() -> None:
    label = checked(spending=np.arange(N, dtype=float)).label
    assert label is not None
    assert (label.quantiles["0"], label.quantiles["0.5"], label.quantiles["1"]) == (0.0, (N - 1) / 2, N - 1)
    assert label.zeros == pytest.approx(1 / N)


def test_few_rows_for_many_columns() -> None:
    table = pa.table({f"x{i}": RNG.normal(size=20) for i in range(5)})
    assert "few-rows" in kinds(check_table("bank", table, Roles(), None, Policy()))


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"a": pa.array([], pa.float64())}),
        pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"]),
        "there-is-no-such-file.csv",
    ],
)
def test_what_is_no_table_is_a_finding(table: object) -> None:
    check = check_table("bank", table, Roles(), "auto", Policy())
    assert not check.starts
    assert len(check.findings) == 1


ODD: list[dict[str, Any]] = [
    {},
    {"age": with_gaps(3)},
    {"age": [None] * N},
    {"age": pa.nulls(N)},
    {"job": ["x"] * N},
    {"age": [np.inf, *CLEAN["age"][1:]]},
    {"age": [1e200, *CLEAN["age"][1:]]},
    {"age": np.full(N, 1e-300)},
    {"id": [2**60 + i for i in range(N)]},
    {"blob": [b"x"] * N},
    {"list": [[1]] * N},
    {"customer": ["c1"] * N},
    {"customer": [1.5] * N},
    {"spending": [None, *CLEAN["spending"][1:]]},
    {"flag": [True, False] * (N // 2)},
]


def test_rules_are_tried_at_once_if_none_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    real = Prepare.by_column

    def counted(self: Prepare, *given: Any) -> dict[str, Rule]:
        tried.append(len(self.columns))
        return real(self, *given)

    monkeypatch.setattr(Prepare, "by_column", counted)
    columns: dict[str, Any] = {f"c{i}": RNG.normal(0, 1, N) for i in range(30)}
    assert list(checked(Prepare({name: Number() for name in columns}), **columns).rules) == list(columns)
    assert tried.count(1) == 0
    check = checked(Prepare({"nowhere": Number(), "none": Number(), **dict.fromkeys(columns, Number())}), **columns)
    assert kinds(check).count("rule") == 2
    assert list(check.rules) == list(columns)


def party_starts(table: pa.Table, roles: Roles, prepare: Preparing) -> bool:
    """Say whether it can learn from this table, too; a party of new rows need not."""
    given: dict[str, Any] = dict(roles.items())
    try:
        party = Party("bank", table, prepare=prepare, **given)
        if party.table.preparing is not None:
            party.table.preparing.fitted(None)
    except InputError:
        return False
    return True


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("columns", ODD, ids=lambda columns: ",".join(columns))
def test_a_party_starts_if_and_only_if_the_check_says_so(columns: dict[str, Any], prepared: bool) -> None:
    table, roles = pa.table({**CLEAN, **columns}), Roles("spending", "customer")
    rules: dict[str, Rule] = {name: Number(missing="mean") for name in table.column_names if name in ("age", *columns)}
    prepare = Prepare(
        {name: rule for name, rule in rules.items() if name not in ("spending", "customer")} or {"age": Number()}
    )
    chosen = prepare if prepared else None
    check = check_table("bank", table, roles, chosen, Policy(level="open"))
    assert check.starts == party_starts(table, roles, chosen)


@pytest.mark.parametrize("prepare", [None, "auto"])
@pytest.mark.parametrize(
    ("roles", "column"),
    [
        (Roles(weight="w"), np.ones(N)),
        (Roles(weight="w"), np.arange(N) - 5.0),
        (Roles(weight="w"), ["x"] * N),
        (Roles(split="w"), ["test", "train"] * (N // 2)),
        (Roles(split="w"), ["test", "trian"] * (N // 2)),
        (Roles("w"), [np.inf, *range(N - 1)]),
        (Roles("w"), pa.array([1, 2] * (N // 2)).dictionary_encode()),
        (Roles("w"), np.arange(N, dtype=np.float16)),
        (Roles(), pa.array([1, 2] * (N // 2)).dictionary_encode()),
        (Roles(), pa.array([True, False] * (N // 2)).dictionary_encode()),
        (Roles(), np.arange(N, dtype=np.float16)),
        (Roles(), pa.array([-(2**62)] * N).cast(pa.timestamp("s"))),
        (Roles(), pa.array(["1", "12k"] * (N // 2), pa.string_view())),
    ],
)
def test_so_it_does_with_weights_marks_and_labels(roles: Roles, column: Any, prepare: Preparing) -> None:
    table = pa.table({"age": CLEAN["age"], "income": CLEAN["income"], "w": column})
    check = check_table("bank", table, roles, prepare, Policy(level="open"))
    assert check.starts == party_starts(table, roles, prepare)


def test_a_csv_file_with_everything(tmp_path: Path) -> None:
    path = tmp_path / "bank.csv"
    path.write_text(
        "id,job,opened,note\n"
        + "".join(f"{i},{'cook' if i % 2 else ''},2020-01-{1 + i % 28:02},n{i}\n" for i in range(60))
    )
    check = check_table("bank", str(path), Roles(None, "id"), "auto", Policy())
    assert check.starts
    assert [each.kind for each in check.columns] == ["text", "text", "date", "text"]
    assert check.columns[1].missing == 30
    assert "note" not in check.rules


def test_how_a_file_is_read_is_told_and_where_its_rows_stand(tmp_path: Path) -> None:
    path = tmp_path / "bank.csv"
    rows = "".join(f"c{i};{i % 7},5;{i % 3}\n" for i in range(40))
    path.write_text(f"id;höhe;x\n{rows}c99;;1\n", encoding="latin-1")
    check = check_table("bank", str(path), Roles(None, "id"), None, Policy())
    assert "semicolons" in the(check, "reading").words
    assert "row 40 (line 42 of bank.csv)" in the(check, "missing").words
