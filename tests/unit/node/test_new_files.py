"""Files to start from: their readers take them, whatever the table is like, and they say what was meant."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from colonnade.cli.job import read_job
from colonnade.data.checking.starting import start_from
from colonnade.errors import InputError
from colonnade.node.files import PartyFile, read_federation_file, read_party_file
from colonnade.node.new_files import new_federation_file, new_job_file, new_party_file
from colonnade.preparation.rules import Category, Date, Number, Prepare
from colonnade.server_jobs import read_jobs

N = 40
NAMES = [
    "plain",
    "two words",
    "dotted.name",
    'with "quotes"',
    "it's",
    "[prepare]",
    "x[1]",
    "a*",
    "# remark",
    "naïve 😀",
    "tab\there",
    "new\nline",
    'x"\n[policy]\nlevel = "open',
    "\x7f\u202e",
    "back\\slash",
    "=",
]


def table_of(folder: Path, columns: dict[str, Any], name: str = "bank.parquet") -> Path:
    path = folder / name
    table = pa.table(columns)
    if name.endswith(".csv"):
        csv.write_csv(table, path)
    else:
        parquet.write_table(table, path)
    return path


def party_file(table: Path, **roles: Any) -> tuple[str, PartyFile]:
    path = table.parent / "bank.toml"
    path.write_text(new_party_file(start_from("bank", str(table), table.name, **roles), path))
    return path.read_text(), read_party_file(path)


def mixed() -> dict[str, Any]:
    return {
        "customer": [f"c{i}" for i in range(N)],
        "income": [None, *(i + 0.5 for i in range(1, N))],
        "job": ["clerk", "cook"] * (N // 2),
        "opened": [f"2020-01-{1 + i % 28:02}" for i in range(N)],
        "flat": [7] * N,
        "spending": [3.25 * i for i in range(N)],
    }


@pytest.mark.parametrize("name", ["bank.parquet", "bank.csv"])
def test_a_party_file_has_roles_rules_and_what_was_left_out(tmp_path: Path, name: str) -> None:
    text, file = party_file(table_of(tmp_path, mixed(), name), label="spending")
    assert (file.name, file.data.key, file.data.label) == ("bank", "customer", "spending")
    assert file.prepare == Prepare({"income": Number(missing="median"), "job": Category(), "opened": Date()})
    assert file.policy.level == "usual"
    assert Path(file.data.file or "") == tmp_path / name
    assert file.tls is not None
    assert file.tls.certificate.endswith("certs/bank.pem")
    assert re.search(r"^income = .*  # 1 missing$", text, re.MULTILINE)
    assert re.search(r"^job = .*  # 2 levels, none missing$", text, re.MULTILINE)
    assert re.search(r"^# flat = .*  # left out", text, re.MULTILINE)


def test_a_label_is_never_guessed_only_suggested(tmp_path: Path) -> None:
    text, file = party_file(table_of(tmp_path, mixed()))
    assert file.data.label is None
    assert re.search(r'^# label = "spending" +# ', text, re.MULTILINE)


def test_a_suggestion_can_be_taken_as_its_remark_says(tmp_path: Path) -> None:
    text, _ = party_file(table_of(tmp_path, mixed()))
    path = tmp_path / "taken.toml"
    lines = [line.removeprefix("# ") if line.startswith("# label") else line for line in text.splitlines()]
    path.write_text("\n".join(line for line in lines if not line.startswith("spending = ")))
    file = read_party_file(path)
    assert file.data.label == "spending"
    assert isinstance(file.prepare, Prepare)
    assert "spending" not in file.prepare.columns


def test_columns_left_out_can_be_put_to_use(tmp_path: Path) -> None:
    text, _ = party_file(table_of(tmp_path, {**mixed(), "when": [None] * N, "note": [f"n{i}" for i in range(N)]}))
    path = tmp_path / "taken.toml"
    path.write_text(re.sub(r"^# (.* = \{ kind = )", r"\1", text, flags=re.MULTILINE))
    prepare = read_party_file(path).prepare
    assert isinstance(prepare, Prepare)
    assert {"flat", "when", "note"} <= set(prepare.columns)


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_column_is_called(tmp_path: Path, name: str) -> None:
    table = table_of(tmp_path, {name: [i % 7 + 0.5 for i in range(N)], "other": [i % 3 for i in range(N)]})
    _, file = party_file(table)
    assert isinstance(file.prepare, Prepare)
    assert list(file.prepare.by_column([name, "other"])) == [name, "other"]
    assert file.policy.level == "usual", "a header writes no policy"
    _, file = party_file(table, label=name)
    assert file.data.label == name
    _, file = party_file(table, key=[name, "other"])
    assert file.data.key == [name, "other"]


@pytest.mark.parametrize("name", NAMES)
def test_whatever_a_key_or_a_column_left_out_is_called(tmp_path: Path, name: str) -> None:
    table = table_of(
        tmp_path, {name: [f"c{i}" for i in range(N)], "flat\n" + name: [1] * N, "x": [i % 3 for i in range(N)]}
    )
    text, file = party_file(table)
    assert file.data.key == name
    assert isinstance(file.prepare, Prepare)
    assert list(file.prepare.columns) == ["x"]
    assert all(line.isprintable() for line in text.splitlines())


def test_no_value_of_the_table_is_written(tmp_path: Path) -> None:
    columns = {
        "customer": [f"secret{i}" for i in range(N)],
        "income": [7654321.5 + i for i in range(N)],
        "count": [7654321 + i % 5 for i in range(N)],
        "job": ["astronaut", "cook"] * (N // 2),
        "born": [f"1953-01-{1 + i % 28:02}" for i in range(N)],
        "odd": ["cosmonaut"] * N,
    }
    text, _ = party_file(table_of(tmp_path, columns))
    assert not re.search(r"secret|76543|naut|cook|1953", text)


def test_a_key_that_repeats_is_suggested_with_the_reason(tmp_path: Path) -> None:
    text, file = party_file(table_of(tmp_path, {"id": [1, 1, *range(2, N)], "x": [0.5 * (i % 9) for i in range(N)]}))
    assert file.data.key is None
    assert re.search(r'^# key = "id" +# .*only 39 of them differ', text, re.MULTILINE)


def test_what_is_called_like_a_key_is_not_learned_from(tmp_path: Path) -> None:
    columns = {"id": range(N), "shop_id": [i % 9 for i in range(N)], "x": [0.5 * (i % 9) for i in range(N)]}
    text, file = party_file(table_of(tmp_path, columns))
    assert file.data.key == "id"
    assert file.prepare == Prepare({"x": Number()})
    assert re.search(r"^# shop_id = .*called like a key", text, re.MULTILINE)


def test_a_label_alone_needs_no_rules(tmp_path: Path) -> None:
    _, file = party_file(table_of(tmp_path, {"id": range(N), "y": [0.5 * i for i in range(N)]}), label="y")
    assert file.prepare is None


def test_columns_left_out_never_enter_because_there_is_no_rule(tmp_path: Path) -> None:
    columns = {"id": range(N), "shop_id": [i % 9 for i in range(N)], "y": [0.5 * i for i in range(N)]}
    with pytest.raises(InputError, match="nothing but 'shop_id' could enter"):
        party_file(table_of(tmp_path, columns), label="y")


def test_a_table_of_which_nothing_can_enter_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Party 'bank': .*left out"):
        party_file(table_of(tmp_path, {"flat": [1] * N}))


@pytest.mark.parametrize("roles", [{"label": "nosuch"}, {"key": ["nosuch"]}])
def test_roles_that_are_not_there(tmp_path: Path, roles: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"there is no (label|key) column 'nosuch'"):
        party_file(table_of(tmp_path, mixed()), **roles)


def test_a_federation_file_is_read_and_its_jobs_can_be_put_to_use(tmp_path: Path) -> None:
    path = tmp_path / "federation.toml"
    text = new_federation_file(["bank", 'odd "shop"'], path)
    path.write_text(text)
    file = read_federation_file(path)
    assert file.parties == ["bank", 'odd "shop"']
    assert file.align.mode == "aided"
    assert file.job == []
    head, jobs = text.split("# [[job]]", 1)
    path.write_text(
        head + "\n".join(line.removeprefix("# ").removeprefix("#") for line in ("# [[job]]" + jobs).splitlines())
    )
    assert [type(job).__name__ for job in read_jobs(read_federation_file(path).job, path)] == [
        "FitJob",
        "EvaluateJob",
        "PredictJob",
    ]


@pytest.mark.parametrize("n_rows", [40, 5000])
def test_a_job_file_is_read(tmp_path: Path, n_rows: int) -> None:
    bank = table_of(
        tmp_path, {"id": range(n_rows), "x": [i % 7 for i in range(n_rows)], "y": [i % 5 + 0.5 for i in range(n_rows)]}
    )
    shop = table_of(
        tmp_path, {"who": [f"{i}" for i in range(n_rows)], 'od"d\n': ["a", "b"] * (n_rows // 2)}, "shop.parquet"
    )
    path = tmp_path / "job.toml"
    starts = [start_from("bank", str(bank), bank.name, label="y"), start_from("shop", str(shop), shop.name)]
    path.write_text(new_job_file(starts, path))
    job = read_job(path, None)
    assert job.align == "aided"
    assert [(entry.name, entry.key, entry.label) for entry in job.party] == [("bank", "id", "y"), ("shop", "who", None)]
    assert [entry.prepare for entry in job.party] == [Prepare({"x": Number()}), Prepare({'od"d\n': Category()})]
    assert type(job.sampler).__name__ == ("AllRows" if n_rows == 40 else "ImportanceSampling")


def test_tables_without_keys_are_taken_in_their_order(tmp_path: Path) -> None:
    table = table_of(tmp_path, {"x": [0.5 * (i % 7) for i in range(N)]})
    path = tmp_path / "job.toml"
    path.write_text(new_job_file([start_from(name, str(table), table.name) for name in ("a", "b")], path))
    assert read_job(path, None).align == "exact"
