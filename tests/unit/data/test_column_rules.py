"""Columns that the owner's policy does not let in: they are never looked at, and nobody learns that they are there."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import colonnade as cn
from whole_tables import held

FRAME = pd.DataFrame(
    {
        "income": [1.0, 2.0, 3.0],
        "name": ["Ann", "Bea", "Cy"],
        "age": [30, 40, 50],
        "gaps": [1.0, None, 3.0],
        "y": [0.0, 1.0, 0.0],
        "id": ["a", "b", "c"],
        "count": [1, 2, 1],
        "fold": [0, 1, 0],
    }
)
ROLES: dict[str, Any] = {"label": "y", "key": "id", "weight": "count", "split": "fold"}


def refusal(policy: cn.Policy, data: object = FRAME, **roles: Any) -> str:
    with pytest.raises(cn.InputError) as caught:
        cn.Party("bank", data, policy=policy, **roles)
    return str(caught.value)


@pytest.mark.parametrize(
    "policy",
    [
        cn.Policy(level="open", columns=["age", "income", "y", "id", "count", "fold"]),
        cn.Policy(level="open", never_columns=["name", "gaps"]),
        cn.Policy(level="open", columns=["income", "gaps", "age", *ROLES.values()], never_columns=["name"]),
    ],
    ids=["allowed", "never", "both"],
)
@pytest.mark.parametrize(
    "convert", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_columns_that_are_not_allowed_never_enter(convert: Any, policy: cn.Policy) -> None:
    frame = FRAME.assign(gaps=0.0) if "gaps" in (policy.columns or ()) else FRAME
    table = cn.Party("bank", convert(frame), policy=policy, **ROLES).table
    wanted = ["income", "age"] if "gaps" not in (policy.columns or ()) else ["income", "age", "gaps"]
    assert list(table.feature_names) == wanted, "in the table's order"
    assert held(table)[:, :-1].T.tolist() == [frame[name].tolist() for name in wanted]
    assert (table.label_name, held(table)[:, -1].tolist()) == ("y", [0.0, 1.0, 0.0])
    assert table.weight_column is not None
    assert table.split_column is not None
    assert table.key_digest is not None


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_columns_of_a_file(tmp_path: Path, suffix: str) -> None:
    FRAME.to_parquet(tmp_path / "bank.parquet")
    FRAME.to_csv(tmp_path / "bank.csv", index=False)
    policy = cn.Policy(level="open", columns=["age", "y"])
    table = cn.Party("bank", tmp_path / f"bank.{suffix}", label="y", policy=policy).table
    assert (table.feature_names, held(table)[:, 0].tolist()) == (("age",), [30.0, 40.0, 50.0])


def test_columns_of_an_array() -> None:
    values = np.arange(12.0).reshape(3, 4)
    policy = cn.Policy(level="open", never_columns=["bank_0", "bank_2"])
    table = cn.Party("bank", values, label=[1.0, 2.0, 3.0], policy=policy).table
    assert table.feature_names == ("bank_1", "bank_3")
    assert held(table).tolist() == [[1.0, 3.0, 1.0], [5.0, 7.0, 2.0], [9.0, 11.0, 3.0]]
    only = cn.Policy(level="open", columns=["bank_label"])
    alone = cn.Party("bank", values, label=[1.0, 2.0, 3.0], policy=only).table
    assert (alone.feature_names, held(alone).tolist()) == ((), [[1.0], [2.0], [3.0]])


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_is_not_allowed_is_bad_input(role: str) -> None:
    name = ROLES[role]
    never = refusal(cn.Policy(level="open", never_columns=["name", "gaps", name]), **ROLES)
    assert never == (
        f"Party 'bank': the {role} column {name!r} is not allowed by never_columns of its owner's policy. Leave out "
        f"{role}={name!r}, or take it out of never_columns."
    )
    others = [column for column in ["age", *ROLES.values()] if column != name]
    assert refusal(cn.Policy(level="open", columns=others), **ROLES) == (
        f"Party 'bank': the {role} column {name!r} is not allowed by columns of its owner's policy. Leave out "
        f"{role}={name!r}, or add it to columns."
    )


def test_the_label_of_an_array_must_be_allowed() -> None:
    text = refusal(cn.Policy(level="open", columns=["bank_0"]), np.eye(3), label=[1.0, 2.0, 3.0])
    assert "the label column 'bank_label' is not allowed by columns" in text


@pytest.mark.parametrize("rule", ["columns", "never_columns"])
def test_a_column_that_does_not_exist_is_bad_input(rule: str) -> None:
    rules: dict[str, Any] = {rule: ["incom"]}
    policy = cn.Policy(**rules)
    text = refusal(policy)
    assert f"there is no column 'incom', which {rule} of its owner's policy names" in text
    assert text.endswith("Name one of them. Did you mean 'income'?")
    assert "there is no column 'incom'" in refusal(policy, np.eye(3))


def test_nothing_left_is_bad_input() -> None:
    assert "0 column(s) to learn from" in refusal(cn.Policy(level="open", columns=[]))


def test_a_column_is_allowed_or_not() -> None:
    with pytest.raises(cn.InputError, match="the column 'age' in columns and in never_columns"):
        cn.Policy(level="open", columns=["age", "income"], never_columns=["age"])
    shown = "Policy(level='open', columns=['b', 'a'], never_columns='c')"
    assert repr(cn.Policy(level="open", columns=["b", "a"], never_columns="c")) == shown
    assert repr(cn.Policy()) == "Policy(level='usual')"


def test_nobody_is_told_of_a_column_that_does_not_enter() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["income", "age", "secret"])
    bank = cn.Party("bank", frame, label="age", policy=cn.Policy(level="open", never_columns=["secret"]))
    federation = cn.Federation([bank, cn.Party("shop", rng.normal(size=(60, 2)))])
    run = federation.fit(cn.Regression(), sampler=cn.UniformSampling(30), solver=cn.Central(), seed=0)
    assert run.model.feature_names_in_ == ("income", "shop_0", "shop_1")
