"""What is wrong in a file that somebody wrote, by section, with the nearest name, and not all there are."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from colonnade.errors import InputError
from colonnade.node.files import read_party_table
from colonnade.toml_files import misnamed, read_toml


class Number(msgspec.Struct, tag_field="kind", tag="number", forbid_unknown_fields=True):
    missing: Literal["error", "mean"] | float = "error"
    at_most: float | None = None


class Category(msgspec.Struct, tag_field="kind", tag="category", forbid_unknown_fields=True):
    rare: int = 10
    order: Literal["given", "sorted"] = "given"


class Rules(msgspec.Struct, forbid_unknown_fields=True):
    columns: dict[str, Number | Category] = {}


class Loose(msgspec.Struct):
    rules: Rules | None = None


class File(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    prepare: Rules | Literal["auto"] = "auto"
    table: list[Category] = []
    loose: Loose | None = None
    now: int = msgspec.field(default=0, name="before")


def read(tmp_path: Path, text: str) -> File:
    path = tmp_path / "file.toml"
    path.write_text(text if "name =" in text.lower() else f'name = "a"\n{text}')
    return read_toml(path, File, lambda problem: "ask her." if "got `bool`" in problem else None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nmae = 1", "the top level has no option `nmae`. Did you mean `name`?"),
        ('NAME = "a"', "the top level has no option `NAME`. Did you mean `name`?"),
        ("zzz = 1", "the top level has no option `zzz`. Write one of `name`, `prepare`, `table`, `loose`, `now`."),
        ("before = 1 # name =", "the top level lacks `name`. Add it."),
        (
            'prepare.columns.age.kind = "nubmer"',
            '[prepare.columns.age] knows no kind = "nubmer". Did you mean "number"?',
        ),
        ('prepare.columns.age.kind = ["number"]', "[prepare.columns.age] knows no kind = "),
        ("prepare.columns.age.rare = 1", '[prepare.columns.age] lacks `kind`. Write one of "number", "category".'),
        (
            '[prepare.columns]\nage = {kind = "number", atmost = 1}',
            '[prepare.columns.age] with kind = "number" has no option `atmost`. Did you mean `at_most`?',
        ),
        (
            '[prepare.columns]\nage = {kind = "number", wild = 1}',
            '[prepare.columns.age] with kind = "number" has no option `wild`. Write one of `kind`, `missing`, `at_',
        ),
        (
            '[[table]]\nkind = "category"\n[[table]]\nkind = "category"\nrar = 1',
            '[[table]] number 2 with kind = "category" has no option `rar`. Did you mean `rare`?',
        ),
        (
            '[[table]]\nkind = "category"\norder = "sort"',
            '[[table]] number 1, table.order cannot be "sort". Did you mean "sorted"?',
        ),
        (
            "[loose]\nmore = 1\n[loose.rules]\ncolumn = 1",
            "[loose.rules] has no option `column`. Did you mean `columns`?",
        ),
        ("before = true", "ask her."),
        ('table = "a"', "table must be a list, not text. Correct that value."),
        ("before = 1.5", "before must be a whole number, not a number. Correct that value."),
        ('[[table]]\nkind = "category"\nrare = "a"', "[[table]] number 1, rare must be a whole number, not text."),
        ("name = 1", "name must be text, not a whole number. Correct that value."),
        ('name = ""', "Expected `str` of length >= 1 - at `$.name`. Correct that value."),
    ],
)
def test_the_section_the_name_and_what_is_near(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'file.toml'}: {message}")


def test_what_is_right_is_read_by_either_of_its_names(tmp_path: Path) -> None:
    text = 'before = 2\n[prepare.columns]\nage = {kind = "number", missing = 0.5}\n[loose]\nmore = 1'
    found = read(tmp_path, text)
    assert (found.now, found.prepare) == (2, Rules({"age": Number(0.5)}))
    assert misnamed(File, {"name": "a", "now": 2}) is None


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"file\.toml is not TOML: .* Correct that line"):
        read(tmp_path, "name = ")
    with pytest.raises(InputError, match=r"is not TOML: .* twice .* two brackets, \[\[party\]\]"):
        read(tmp_path, "[loose]\n[loose]")
    with pytest.raises(InputError, match=r"is not TOML: .* Write an option once"):
        read(tmp_path, "before = 1\nbefore = 2")
    with pytest.raises(InputError, match=r"Cannot read .*: .* Pass the path of a TOML file"):
        read_toml(tmp_path, File, lambda _: None)
    (tmp_path / "file.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(InputError, match=r"Cannot read .*: .* Pass the path of a TOML file"):
        read_toml(tmp_path / "file.toml", File, lambda _: None)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ('{ kind = "number", missing = "level" }', "prepare.columns.w.missing"),
        ('{ kind = "category", rare = 0 }', "prepare.columns.w"),
        ('"number"', "prepare.columns.w must be a table, not text"),
    ],
)
def test_an_entry_is_named(tmp_path: Path, rule: str, words: str) -> None:
    path = tmp_path / "bank.toml"
    path.write_text(f'name = "bank"\n[data]\nfile = "x"\n[prepare.columns]\na = {{ kind = "number" }}\nw = {rule}\n')
    with pytest.raises(InputError, match=words):
        read_party_table(path)
