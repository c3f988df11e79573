"""Levels read off the number of prepared columns.

How many columns a party makes of a category follows from the rows that count. A server that could choose these at will
would learn, split by split, which rows have a rare level.
"""

from pathlib import Path

import numpy as np
import pandas as pd

import colonnade as cn
from colonnade.job_sheets import sheet_of
from colonnade.kernels.draws import hold_out
from colonnade.messages import Reveals
from colonnade.protocol.preparing import PrepareColumns, PreparedColumns
from colonnade.protocol.viewing import Moments, UseFrame
from hostile_trial import N_ROWS, HostileServer, hostile_server, made_parties, turned_away

TARGET, RARE = "party1", [5, 50, 77]


def test_prepared_columns_by_honest_splits_do_not_tell_a_rare_level(tmp_path: Path) -> None:
    """Three of 100 rows are judges. Where all are held out there is no column for what is rare.

    Columns are prepared for three choices of rows, and even where the server knows which to ask for they leave 12
    suspects.
    """
    jobs = np.array(["clerk", "cook", "nurse"])[np.arange(N_ROWS) % 3]
    jobs[RARE] = "judge"
    parties, suspects = made_parties(), np.ones(N_ROWS, bool)
    parties[0] = cn.Party(TARGET, pd.DataFrame({"job": jobs}), prepare=cn.Prepare({"job": cn.Category()}))
    held_out = {seed: hold_out(N_ROWS, 0.5, np.random.default_rng(seed)) for seed in range(150)}

    def attack(server: HostileServer) -> None:
        for seed in (seed for seed, rows in held_out.items() if rows[RARE].all()):
            split = cn.HoldOut(0.5, seed)
            server.open_each({TARGET: sheet_of("prepare", {"split": split}, server.roster, None)})
            server.told(TARGET, UseFrame("train", "own", split, None, None), Moments)
            told = server.told(TARGET, PrepareColumns(), PreparedColumns)
            assert told.feature_names == ("job#1", "job#2")
            assert told.levels is None
            suspects[~held_out[seed]] = False

    with hostile_server(tmp_path, parties) as server:
        turned_away(lambda: attack(server), "prepares columns for 3 choices of held-out rows at most")
        assert server.disclosed() <= {Reveals.SCHEMA}
    assert suspects.sum() > 10
