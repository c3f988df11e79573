"""Tables of several parties that hold different records in different orders, and what `pandas.merge` makes of them."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd

import colonnade as cn
from colonnade.contracts import Alignment
from colonnade.kernels.arrays import Floats
from harness import parties_of

MODES = ("clear", "aided", "curve")
LABEL = "y"


def named(number: int) -> str:
    """Name a party; more than nine are not in the order of their names."""
    return f"party{number}"


def frames(keys: Sequence[Sequence[int]], seed: int = 0) -> dict[str, pd.DataFrame]:
    """Give each party a table of these keys, in an order of its own: a column that carries the key, and one more."""
    rng = np.random.default_rng(seed)
    tables = {}
    for number, own in enumerate(keys):
        order = rng.permutation(np.asarray(own, dtype=np.int64))
        columns = {"id": order, f"k{number}": order.astype(np.float64), f"x{number}": rng.normal(size=len(order))}
        tables[named(number)] = pd.DataFrame(columns)
    last = tables[named(len(keys) - 1)]
    last[LABEL] = rng.normal(size=len(last)) + last["id"] % 7
    return tables


def parties(tables: dict[str, pd.DataFrame], **options: Any) -> list[cn.Party]:
    """Make parties of tables; that which has a label holds it."""
    return [
        cn.Party(name, table, key="id", label=LABEL if LABEL in table else None, **options)
        for name, table in tables.items()
    ]


def merged(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Do what an alignment does where all keys are in one place."""
    whole: pd.DataFrame = reduce(lambda left, right: left.merge(right, on="id"), tables.values())
    return whole


def table_rows(federation: cn.Federation) -> Floats:
    """Put the aligned tables of all parties beside each other."""
    sessions = parties_of(federation)._parties.values()
    tables = [session._data.table for session in sessions]
    return np.hstack([table.take(np.arange(table.n_rows)) for table in tables])


def sorted_rows(rows: Any) -> Floats:
    """Sort rows by the key that their first column carries."""
    rows = np.asarray(rows, dtype=np.float64)
    return np.asarray(rows[np.argsort(rows[:, 0])])


def an_alignment(positions: Sequence[int], fingerprint: bytes = bytes(16)) -> Alignment:
    return Alignment(fingerprint, np.array(positions, dtype=np.int64))
