from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from colonnade.node.preparation_files import PreparationFiles
from colonnade.preparation.rules import Number, Prepare

NAME = "0" * 32


@pytest.mark.parametrize("coef", [np.array([0.5, -3.0, 1.0]), np.array([[0.5, 0.0, 1.0], [0.1, -3.0, 0.2]])])
def test_a_part_of_a_model_is_told_by_the_partys_own_names(coef: np.ndarray, tmp_path: Path) -> None:
    """Of one model, or of one for each class."""
    frame = pd.DataFrame({"age": [30.0, 40.0, 50.0], "income": [3.0, 2.0, 1.0], "visits": [0.0, 1.0, 4.0]})
    party = cn.Party("bank", frame, prepare=Prepare(dict.fromkeys(("age", "income", "visits"), Number())))
    assert party.table.preparing is not None
    said: list[str] = []
    files = PreparationFiles(tmp_path, said.append)
    files.keep(NAME, party.table.preparing.fitted(None))
    files.keep_part(NAME, (coef, None, None))
    assert said[-1].endswith("Largest coefficients: income -3, visits 1, age 0.5.")
    assert (tmp_path / f"part-{NAME}.json").exists()
