"""What is aligned is what `pandas.merge` gives, in every mode, for any number of parties."""

import numpy as np
import pytest

import colonnade as cn
from alignment_trial import LABEL, MODES, frames, merged, named, parties, sorted_rows, table_rows
from colonnade.alignment import check_mode
from colonnade.alignment.listing import BLOCK_KEYS
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback

RNG = np.random.default_rng(3)


def one_common(n_parties: int) -> list[list[int]]:
    return [[7, *range(100 * (party + 1), 100 * (party + 1) + 20 + party)] for party in range(n_parties)]


def at_random(n_parties: int) -> list[list[int]]:
    return [sorted(RNG.choice(60, size=int(RNG.integers(45, 60)), replace=False).tolist()) for _ in range(n_parties)]


CASES = {"full": lambda n: [list(range(40))] * n, "one row": one_common, "random": at_random}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_parties", [2, 3, 5, 8])
@pytest.mark.parametrize("case", CASES)
def test_the_rows_are_those_of_a_merge(mode: str, n_parties: int, case: str) -> None:
    tables = frames(CASES[case](n_parties))
    whole = merged(tables)
    assert len(whole) >= 1
    federation = cn.Federation(parties(tables), align=mode)
    assert federation.roster.n_rows == len(whole)
    columns = [name for table in tables.values() for name in table.columns if name not in ("id", LABEL)] + [LABEL]
    np.testing.assert_array_equal(sorted_rows(table_rows(federation)), sorted_rows(whole[columns]))
    report = federation.alignment
    assert report is not None
    assert (report.mode, report.matched) == (mode, len(whole))
    for name, table in tables.items():
        found = report.parties[name]
        assert (found.rows, found.unmatched, found.repeated) == (len(table), len(table) - len(whole), 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n_parties", [2, 3, 5, 8])
def test_tables_that_have_no_record_in_common(mode: str, n_parties: int) -> None:
    """Also where any two of three have some, and where only the last has none."""
    disjoint = [list(range(10 * party, 10 * party + 10)) for party in range(n_parties)]
    pairwise = [[number for number in range(n_parties) if number != party] for party in range(n_parties)]
    for keys in [disjoint, pairwise if n_parties > 2 else disjoint, [*[[1, 2]] * (n_parties - 1), [3]]]:
        with pytest.raises(
            cn.AlignmentError, match=rf"No key is at every party \({named(0)} {len(keys[0])}, .* keys\)"
        ):
            cn.Federation(parties(frames(keys)), align=mode)


def test_an_empty_table_is_a_named_error() -> None:
    with pytest.raises(cn.InputError, match=r"Party 'party1': the table has 0 row\(s\)"):
        cn.Federation(parties(frames([[1, 2], []])), align="aided")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", [InProcess, Loopback])
def test_lists_of_several_blocks(mode: str, transport: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of eight keys: parties with one, with a whole number of them, and with some more."""
    for module in ("listing", "curve"):
        monkeypatch.setattr(f"colonnade.alignment.{module}.BLOCK_KEYS", 8)
    tables = frames([range(5), range(1, 25), range(30)])
    federation = cn.Federation(parties(tables), align=mode, transport=transport)
    np.testing.assert_array_equal(np.sort(table_rows(federation)[:, 0]), [1, 2, 3, 4])
    assert BLOCK_KEYS > 8


def test_positions_are_in_no_order_of_keys_or_rows() -> None:
    tables = frames([range(200), range(200)])
    found = table_rows(cn.Federation(parties(tables), align="aided"))[:, 0]
    assert found.tolist() != sorted(found)
    # Of 200 places at random, 1 is where it was on average; 12 or more happen once in 10^9.
    assert (found == tables[named(0)]["id"]).sum() < 12


@pytest.mark.parametrize("mode", ["hash", "sha256", "plain"])
def test_plain_hashes_are_refused_with_the_reason(mode: str) -> None:
    with pytest.raises(cn.InputError, match="whoever sees plain hashes of keys hashes all telephone numbers"):
        check_mode(mode)


def test_aided_is_not_for_a_server_that_a_party_runs() -> None:
    with pytest.raises(cn.InputError, match="'bank' runs the server. Use 'curve'"):
        check_mode("aided", "bank")
    check_mode("curve", "bank")
    check_mode("clear", "bank")


def test_no_such_mode() -> None:
    with pytest.raises(cn.InputError, match="align='exakt' is none of exact, clear, aided, curve"):
        cn.Federation(parties(frames([[1], [1]])), align="exakt")  # type: ignore[arg-type]


def test_a_party_without_a_key_or_without_partners() -> None:
    tables = frames([[1, 2], [1, 2]])
    keyless = cn.Party("shop", np.eye(2))
    with pytest.raises(cn.InputError, match="'shop' did not answer AskKeyCard: its table has no key. Name the column"):
        cn.Federation([*parties(tables), keyless], align="aided")
    with pytest.raises(cn.InputError, match="One party has nobody to align with"):
        cn.Federation(parties(tables)[:1], align="aided")


def test_duplicates_are_left_out_and_counted() -> None:
    tables = frames([[1, 2, 3, 4], [1, 2, 3, 4]])
    doubled = tables[named(0)]
    tables[named(0)] = doubled = doubled.iloc[[0, 1, 2, 3, 0]].reset_index(drop=True)
    with pytest.raises(cn.InputError, match="1 of 5 rows repeat the key of an earlier row, in row 4"):
        parties(tables)
    for how, n_rows in (("first", 4), ("drop", 3)):
        federation = cn.Federation(parties(tables, duplicates=how), align="curve")
        assert federation.alignment is not None
        assert federation.alignment.parties[named(0)].repeated == 5 - n_rows
        assert set(table_rows(federation)[:, 0]) == set(doubled["id"]) - (
            {doubled["id"][0]} if how == "drop" else set()
        )


def test_weights_and_marks_go_with_their_rows() -> None:
    tables = frames([range(50), range(20, 70)])
    first = tables[named(0)].assign(w=lambda table: table["id"] + 1.0, held=lambda table: table["id"] % 3 == 0)
    bank = cn.Party(named(0), first, key="id", weight="w", split="held")
    shop = cn.Party(named(1), tables[named(1)], key="id", label=LABEL)
    federation = cn.Federation([bank, shop], align="aided")
    session = federation._runtime.parties._parties[named(0)]  # type: ignore[union-attr]
    table = session._data.table
    keys = table.take(np.arange(table.n_rows))[:, 0]
    np.testing.assert_array_equal(table.weight_column, keys + 1.0)
    np.testing.assert_array_equal(table.split_column, keys % 3 == 0)
    assert table.key_columns(np.arange(3))["id"].to_pylist() == keys[:3].astype(int).tolist()
