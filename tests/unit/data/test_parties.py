from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.preparation.preparation import Preparation


def test_widths_are_a_list() -> None:
    with pytest.raises(cn.InputError, match="widths must be a list"):
        cn.split_columns(np.ones((5, 4)), None, 4)  # type: ignore[arg-type]
    assert len(cn.split_columns(np.ones((5, 4)), None, np.array([2, 2]))) == 2


@pytest.mark.parametrize("widths", [[2, 1], [4, 0], [], [5, -1], [2, 2, 1]])
def test_widths_must_fit(widths: list[int]) -> None:
    with pytest.raises(cn.InputError, match=r"add up to the columns of X|a width must be a whole number of 1 or more"):
        cn.split_columns(np.ones((5, 4)), None, widths)


def test_levels_of_a_csv_file_are_as_they_are_written(tmp_path: Path) -> None:
    """007 is no level 7; NA and nothing are missing; a date by format is text to begin with."""
    path = tmp_path / "bank.csv"
    path.write_text("zip,day\n" + "007,01022020\n7,02022020\nNA,03022020\n,04022020\n" * 10)
    rules = cn.Prepare({"zip": cn.Category(missing="level"), "day": cn.Date(format="%d%m%Y")})
    party = cn.Party("bank", path, prepare=rules)
    fitted = party.table.preparing.fitted(None)  # type: ignore[union-attr]
    names, values, _ = party.table.preparing.applied(fitted)  # type: ignore[union-attr]
    assert Preparation.from_json(fitted).own_names == ("zip=007", "zip=7", "day.days")
    assert names == ("zip#1", "zip#2", "day#1")
    assert values[:4, :2].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]  # of missing there are most


@pytest.mark.parametrize("rules", [None, cn.Prepare({"limit": cn.Number()})])
def test_in_a_file_with_decimal_commas_the_slip_is_what_is_no_number(tmp_path: Path, rules: cn.Prepare | None) -> None:
    path = tmp_path / "bank.csv"
    path.write_text("limit;town\n" + "".join(f"{value};1\n" for value in ["2857,14", "12,5", "12k", "7,1"] * 5))
    with pytest.raises(cn.InputError, match=r"row 2 \(line 4 of bank\.csv\).*'12k'"):
        cn.Party("bank", path, prepare=rules)
