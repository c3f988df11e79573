"""CSV files as people have them: how they are written is found out and said, what is wrong is named by its line."""

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from pyarrow import csv as arrow_csv

import colonnade as cn
from colonnade.data import csv_files, csv_reading
from colonnade.data.csv_files import sniff
from colonnade.data.files import open_table
from colonnade.errors import InputError
from whole_tables import held, read_whole

SEPARATORS = ",;\t|"


def refusal(path: Path, **roles: str) -> str:
    with pytest.raises(InputError) as caught:
        cn.Party("bank", path, **roles)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"Party 'bank': the file {str(path)!r}")
    return str(caught.value).partition(path.name)[2]


def written(folder: Path, content: bytes, name: str = "bank.csv") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


# --- how it is written ---


@pytest.mark.parametrize(
    ("text", "encoding", "note"),
    [
        ("age,größe\n30,1.5\n40,2.5\n", "utf-8", ""),
        ("age,größe\n30,1.5\n40,2.5\n", "utf-8-sig", ""),
        ("age;größe\n30;1,5\n40;2,5\n", "utf-8", "bank.csv: separated by semicolons, decimal comma"),
        ("age;größe\n30;1,5\n40;2,5\n", "latin-1", "bank.csv: separated by semicolons, decimal comma, Latin-1"),
        ("age;größe\n30;1.5\n40;2.5\n", "utf-8", "bank.csv: separated by semicolons"),
        ("age\tgröße\n30\t1.5\n40\t2.5\n", "utf-16", "bank.csv: separated by tabs, UTF-16"),
        ("age|größe\r\n30|1,5\r\n40|2,5\r\n", "utf-8", "bank.csv: separated by bars, decimal comma"),
        ("age,größe €\n30,1.5\n40,2.5\n", "cp1252", "bank.csv: Windows-1252"),
        ("age;größe\r30;1,5\r40;2,5\r", "latin-1", "bank.csv: separated by semicolons, decimal comma, Latin-1"),
        ("\n\nage;größe\n\n30;1,5\n40;2,5\n\n", "utf-8", "bank.csv: separated by semicolons, decimal comma"),
    ],
)
def test_how_it_is_written_is_found_out_and_said(tmp_path: Path, text: str, encoding: str, note: str) -> None:
    party = cn.Party("bank", written(tmp_path, text.encode(encoding)))
    assert party.table.feature_names[0] == "age"
    assert party.table.feature_names[1].startswith("größe")
    assert held(party.table).tolist() == [[30, 1.5], [40, 2.5]]
    assert party.notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("content", "header"),
    [
        (b'id;name;x\n1;"a,b,c;d,e";2\n2;"f,g;h,i,j";3\n', ("id", "name", "x")),
        (b'"a; b","c; d"\n1,2\n3,4\n', ("a; b", "c; d")),
        (b"price, EUR;size, m\n1,5;2,5\n3,5;4,5\n", ("price, EUR", "size, m")),
        (b'"say ""a;b""",x\n1,2\n', ('say "a;b"', "x")),
        (b'a,b\n1,"two\nlines; of\n text;"\n2,x\n', ("a", "b")),
        (b"x\n1\n2\n", ("x",)),
        (b"a;b", ("a", "b")),
    ],
)
def test_separators_within_quotation_marks_are_none(tmp_path: Path, content: bytes, header: tuple[str, ...]) -> None:
    assert sniff("it", written(tmp_path, content)).header == header


words = st.text(st.sampled_from('ab1 ,;|\t"\n'), min_size=1, max_size=6).map(lambda text: f"w{text}")


@given(
    separator=st.sampled_from(SEPARATORS),
    rows=st.lists(st.tuples(words, st.floats(-1e6, 1e6), st.integers(-99, 99)), min_size=3, max_size=8),
)
def test_what_a_writer_of_csv_wrote_is_read(
    tmp_path_factory: pytest.TempPathFactory, separator: str, rows: list[tuple[str, float, int]]
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator).writerows([("word", "x", "n"), *rows])
    path = written(tmp_path_factory.mktemp("csv"), text.getvalue().encode())
    table = read_whole(path, keys=["word"])
    assert table.column_names == ["word", "x", "n"]
    assert table["word"].to_pylist() == [word for word, _, _ in rows]
    assert [float(x) for x in table["x"].to_pylist()] == [x for _, x, _ in rows]


QUOTED_ROWS = ['1,2.5,"a\nb"', "2,3.5,c", '3,4.5,"d, ""e"""', '4,5.5,5" pipe', "5,6.5,f"]
PLAIN_ROWS = ["1,2.5,a", "", "2,3.5,c"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("header", ["x,y,z", '"x","y","z"', '\n\nx,"y",z'])
@pytest.mark.parametrize("rows", [PLAIN_ROWS, QUOTED_ROWS, PLAIN_ROWS + QUOTED_ROWS], ids=["plain", "quoted", "both"])
def test_wherever_a_file_is_cut_it_is_what_pyarrow_reads_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[str], header: str, end: str
) -> None:
    monkeypatch.setattr(csv_reading, "LINE_BYTES", 64)
    lines = [*header.split("\n"), *rows, *rows]
    path = written(tmp_path, end.join(lines).encode())
    options = arrow_csv.ParseOptions(newlines_in_values=True)
    whole = arrow_csv.read_csv(path, parse_options=options)
    for size in range(1, 40):
        monkeypatch.setattr(csv_reading, "PIECE_BYTES", size)
        monkeypatch.setattr(csv_reading, "QUOTED_BYTES", size)
        assert read_whole(path).equals(whole)


@pytest.mark.parametrize(
    ("rows", "decimal"),
    [
        ("1,5;2\n", ","),
        ("1.234,5;2\n", ","),
        ("1,234,567;2.5\n", "."),
        ("1,234,567;2\n", "."),
        ("01.02.2020;1,5\n", ","),
        ("1;2\n", "."),
        ("1.5;a,b\n", "."),
    ],
)
def test_the_decimal_mark(tmp_path: Path, rows: str, decimal: str) -> None:
    assert sniff("it", written(tmp_path, f"a;b\n{rows}".encode())).decimal == decimal


def test_a_letter_far_down_shows_the_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "SNIFFED_BYTES", 64)
    plain, far = b"name,x\n" + b"a,1\n" * 50, "ö,1\n".encode("latin-1")
    opened = open_table("bank", written(tmp_path, plain + far))
    assert opened.notes == ("bank.csv: Latin-1",)
    assert opened.batches.read_all()["name"].to_pylist()[-1] == "ö"
    mixed = written(tmp_path, plain.replace(b"a,1", "é,1".encode(), 1) + far)
    assert refusal(mixed, key="name").endswith(
        ", line 52: it is not UTF-8, which the rest of the file is. Write it again in UTF-8."
    )


@pytest.mark.parametrize(
    ("last", "kind", "value"),
    [
        ("2", "int64", 2),
        ("2.5", "double", 2.5),
        ("", "int64", None),
        ("word", "string", "word"),
        ('"2"', "int64", 2),
        ('"2.5"', "double", 2.5),
        ('"two\nlines"', "string", "two\nlines"),
        ("true", "bool", True),  # as 1 may be
        ("2020-01-01", "string", "2020-01-01"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_type_of_a_column_is_that_of_all_its_values(
    tmp_path: Path, last: str, kind: str, value: object, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning has whole numbers only, and nothing in quotation marks."""
    monkeypatch.setattr(csv_files, "SNIFFED_BYTES", 64)
    table = read_whole(written(tmp_path, ("x,y\n" + "1,2\n" * 50 + f"{last},3\n").encode(encoding)))
    assert str(table["x"].type) == kind
    assert table["x"][-1].as_py() == value
    assert table["x"][0].as_py() == ("1" if kind == "string" else 1)
    assert table["y"].to_pylist() == [2] * 50 + [3]


@pytest.mark.parametrize("begins", ["1.5", "1", "", "word"])
def test_a_word_far_down_is_named_by_its_line(tmp_path: Path, begins: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "SNIFFED_BYTES", 64)
    path = written(tmp_path, ("x,y\n" + f"{begins},1\n" * 50 + "12k,1\n").encode())
    with pytest.raises(InputError, match=r"'x' .string"):
        cn.Party("bank", path)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_beginning_may_end_within_a_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, encoding: str
) -> None:
    content = end.join(["größe,x", *["ö,1"] * 50]).encode(encoding)
    for size in range(40, 44):
        monkeypatch.setattr(csv_files, "SNIFFED_BYTES", size)
        table = read_whole(written(tmp_path, content))
        assert (table.column_names, set(table["größe"].to_pylist())) == (["größe", "x"], {"ö"})


def test_what_is_missing(tmp_path: Path) -> None:
    """The same writings stand for nothing in every column, but not in a key."""
    path = written(tmp_path, b'key,word,x\nNA,NA,NA\nb,"",1.5\nc,null,\nd,no,2\n')
    table = read_whole(path, keys=["key"])
    assert table["word"].to_pylist() == [None, None, None, "no"]
    assert table["x"].to_pylist() == [None, 1.5, None, 2.0]
    assert table["key"].to_pylist() == ["NA", "b", "c", "d"]


def test_only_the_chosen_columns_are_read(tmp_path: Path) -> None:
    """What is not wanted is not even looked at: its bytes are no text."""
    path = written(tmp_path, b"a,b,c\n1,\xff\xfe,2\n3,\xff,4\n")
    assert read_whole(path, lambda _: ["c", "a"]).to_pydict() == {"c": [2, 4], "a": [1, 3]}
    party = cn.Party("bank", path, policy=cn.Policy(level="open", columns=["c", "a"]))
    assert party.table.feature_names == ("a", "c")


@pytest.mark.parametrize("name", ["bank.csv.gz", "bank.csv"])
def test_gzip_is_known_by_its_bytes(tmp_path: Path, name: str) -> None:
    content = gzip.compress(b"a;b\n1;2,5\n") + gzip.compress(b"3;4,5\n")
    party = cn.Party("bank", written(tmp_path, content, name))
    assert held(party.table).tolist() == [[1, 2.5], [3, 4.5]]
    assert party.notes == (f"{name}: separated by semicolons, decimal comma",)


# --- what is wrong with it ---


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "' is empty. Write a line with the names"),
        (b" \n\n", "' is empty."),
        (b"\xef\xbb\xbf\n", "' is empty."),
        (b"a,b", "' has a header, and no rows. Write one line"),
        (b"\n\n\na,b", "' has a header, and no rows."),
        (
            b"a,b\n1,2\n\n3\n4,5\n",
            "', line 4: it has 1 value(s), where the header names 2 column(s), separated by commas.",
        ),
        (b'a,b\n"1\n\n",2\n3,4,5\n', "', line 5: it has 3 value(s)"),
        (b"x\n1,5\n2,5\n", "', line 2: it has 2 value(s), where the header names 1 column(s)"),
        (b'a,b\n1,2\n3,"4\n5,6\n', "', after line 2: a quotation mark is never closed"),
        (
            b'a,b\n1,2\n3,"' + b"4\n" * 70_000,
            "', after line 2: a value is longer than 131,072 characters, and the file",
        ),
        (b"a,b\n1," + b"x" * 140_000 + b"\n2\n", "', after line 1: a value is longer than 131,072 characters"),
        (b"a,b\n1,UTF8,3\n", "', line 2: it has 3 value(s), where the header names 2"),
        ("größe,b\n1,invalid UTF8 data,3\n".encode(), "', line 2: it has 3 value(s), where the header names 2"),
        (b"a,b\n1,\x002\n", "' has NUL bytes: it is no text, or UTF-16 without its mark."),
        ("a,b\n1,2\n".encode("utf-16-le"), "' has NUL bytes"),
        ("a,b\n1,2\n".encode("utf-32"), "' has NUL bytes"),
        (b"a,b,a\n1,2,3\n", "': column name(s) 'a' occur more than once. Rename"),
        (b",b\n1,2\n", "': its column 1 has no name. Name it, or leave it out; pandas"),
        (b"a,b,\n1,2,\n", "': its column 3 has no name."),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    assert refusal(written(tmp_path, content)).startswith(says)


def test_a_first_line_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "SNIFFED_BYTES", 64)
    assert "its first line is longer than 64 bytes" in refusal(written(tmp_path, b"a," * 100 + b"b\n"))


@pytest.mark.parametrize("kept", [3, 12, 40, -9, -1])
def test_a_gzip_file_that_is_cut_off(tmp_path: Path, kept: int) -> None:
    content = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(5000)))[:kept]
    assert "its gzip stream is cut off or damaged" in refusal(written(tmp_path, content, "bank.csv.gz"))


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"id,age\na,30\n\nb,40\nc,12k\nd,50\n", "row 2 (line 5 of bank.csv): '12k'"),
        (b'id,age\na,30\n"b\nb",40\nc,"12,5"\n', "row 2 (line 5 of bank.csv): '12,5'"),
        (b"id,age\n" + b"a,30\n" * 90_000 + b"b,n.a.\n", "row 90000 (line 90002 of bank.csv): 'n.a.'"),
        (b'id,age\na,"1,5"\nb,"2,5"\n', "row 0 (line 2 of bank.csv): '1,5'"),
        (b"id,age\na,30\nb," + b"9" * 50 + b"k\n", f"row 1 (line 3 of bank.csv): '{'9' * 40}...'"),
    ],
)
def test_a_value_that_is_no_number_is_named(tmp_path: Path, content: bytes, value: str) -> None:
    with pytest.raises(InputError) as caught:
        cn.Party("bank", written(tmp_path, content), key="id", duplicates="first")
    assert f"1 column(s) are not numbers: 'age' (string; {value}). Correct a value" in str(caught.value)
    assert "prepare=" in str(caught.value)


def test_a_row_after_a_very_long_value_is_named_without_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, b"id,age\n" + b"x" * 140_000 + b",1\nb,12k\n")
    with pytest.raises(InputError, match=r"'age' \(string; row 1 \(rows count from 0\): '12k'\)"):
        cn.Party("bank", path, key="id")
    assert open_table("bank", path, lambda _: ["id"]).place(1) == "row 1 (rows count from 0)"


def test_names_of_persons_are_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        cn.Party("bank", written(tmp_path, b"who,x\nBob,1\nAnn,2\n"))
    assert "'who' (string). Correct" in str(caught.value)
    assert "Bob" not in str(caught.value)


def test_keys_are_not_shown(tmp_path: Path) -> None:
    """A ragged line is named by its number only: pyarrow's words would quote it."""
    path = written(tmp_path, b"id,x\nsecret-1,1\nsecret-2\n")
    with pytest.raises(InputError) as caught:
        cn.Party("bank", path, key="id")
    assert "secret" not in f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"


@pytest.mark.parametrize("end", [b"\xe9,2\n", b"\x81,2\n"])
def test_a_far_byte_that_is_no_utf_8_behind_a_quotation_mark_is_found_once(tmp_path: Path, end: bytes) -> None:
    """The file is read again as Latin-1, or refused, and not read again and again as what it is not."""
    path = tmp_path / "far.csv"
    path.write_bytes(b'k,b\n"a",2\n' + b"".join(b"k%d,2\n" % each for each in range(200_000)) + end)
    try:
        found = cn.Party("a", path, key="k").table.n_rows
    except cn.InputError:
        found = 0
    assert found == (200_002 if end[0] == 0xE9 else 0), "Windows' Latin-1 has no 0x81"


def test_columns_that_turn_out_to_be_decimals_are_found_in_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in another piece of the file: it is read twice, and not once more for every column."""
    monkeypatch.setattr(csv_reading, "PIECE_BYTES", 1 << 12)
    monkeypatch.setattr(csv_files, "SNIFFED_BYTES", 1 << 10)
    rows = np.ones((6_000, 5))
    for column in range(5):
        rows[1_000 * (column + 1), column] = 0.5
    path = tmp_path / "amounts.csv"
    path.write_text("a,b,c,d,e\n" + "".join(",".join(f"{value:g}" for value in row) + "\n" for row in rows))
    opened: list[int] = []
    begin = csv_reading._parsed

    def counting(*what: Any) -> Any:
        opened.append(1)
        return begin(*what)

    monkeypatch.setattr(csv_reading, "_parsed", counting)
    assert_array_equal(held(cn.Party("a", path).table), rows)
    assert len(opened) == 2
