"""Align, then fit: what scikit-learn makes of the merged tables, in every mode, over every transport."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, Ridge

import colonnade as cn
from alignment_trial import LABEL, MODES, merged
from colonnade.transports.inprocess import InProcess
from colonnade.transports.loopback import Loopback
from flare_trial import NAMES, job_folder, needs_flare, simulate
from network_trial import BANK, federation_in_threads

COLUMNS = ["a", "b", "c", "d"]
TRANSPORTS = {"in one process": InProcess, "loop-back": Loopback}


def tables() -> dict[str, pd.DataFrame]:
    """Three parties with rows of the same people in other orders, each with some that others lack."""
    rng = np.random.default_rng(5)
    whole = pd.DataFrame(rng.standard_t(4, size=(240, 4)) + 3.0, columns=COLUMNS)
    whole[LABEL] = whole @ np.array([1.0, -2.0, 0.5, 3.0]) + rng.normal(size=len(whole))
    # One party writes numbers, one text with blanks; the third has large letters, and numbers of its own.
    whole["id"] = 10**15 + np.arange(len(whole))
    first = whole[["id", "a", "b"]].sample(200, random_state=1)
    second = whole[["id", "c"]].sample(210, random_state=2).assign(id=lambda table: " " + table["id"].astype(str))
    third = whole[["id", "d", LABEL]].sample(220, random_state=3).assign(id=lambda table: table["id"].astype(str))
    return {"bank": first, "shop": second, "telephone": third}


def parties() -> list[cn.Party]:
    return [
        cn.Party(name, table.reset_index(drop=True), key="id", label=LABEL if LABEL in table else None)
        for name, table in tables().items()
    ]


def joined() -> pd.DataFrame:
    return merged({name: table.assign(id=table["id"].astype(str).str.strip()) for name, table in tables().items()})


@contextmanager
def federation(folder: Path, transport: str, mode: Any) -> Iterator[cn.Federation]:
    if transport == "gRPC":
        with federation_in_threads(folder, parties(), align={"mode": mode}) as connected:
            yield connected
    else:
        yield cn.Federation(parties(), align=mode, transport=TRANSPORTS[transport])


def objective(table: pd.DataFrame, coef: Any, intercept: float, l2: float) -> float:
    residuals = table[COLUMNS].to_numpy() @ coef + intercept - table[LABEL].to_numpy()
    return float(residuals @ residuals + len(table) * l2 * (coef @ coef))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", [*TRANSPORTS, "gRPC"])
def test_align_then_fit_is_merge_then_scikit_learn(tmp_path: Path, transport: str, mode: str) -> None:
    table = joined()
    assert 100 < len(table) < 200
    with federation(tmp_path, transport, mode) as aligned:
        assert aligned.alignment is not None
        assert aligned.alignment.matched == aligned.roster.n_rows == len(table)
        for l2 in (0.0, 0.1):
            run = aligned.fit(cn.Regression(l2=l2), sampler=cn.AllRows())
            theirs = Ridge(alpha=len(table) * l2, solver="svd") if l2 else LinearRegression()
            theirs.fit(table[COLUMNS], table[LABEL])
            wanted = objective(table, theirs.coef_, theirs.intercept_, l2)
            found = objective(table, run.model.coef_, run.model.intercept_, l2)
            assert found == pytest.approx(wanted, rel=1e-6)
            np.testing.assert_allclose(run.model.coef_, theirs.coef_, rtol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_in_one_process_all_transports_and_modes_give_the_same_bits(mode: Any) -> None:
    """The order is the same in every run of a rehearsal, in a mode: its sheet is."""
    models = [
        cn.Federation(parties(), align=mode, transport=transport).fit(cn.Regression(), sampler=cn.AllRows()).model
        for transport in (InProcess, Loopback, InProcess)
    ]
    assert len({model.coef_.tobytes() for model in models}) == 1


ALIGNED_FIT = """
[[job]]
do = "fit"
out = "../../fitted"
task = { kind = "regression", l2 = 0.1 }
sampler = { kind = "all" }
"""


@needs_flare
@pytest.mark.slow(sampled=False)
@pytest.mark.parametrize("mode", ["aided", "curve"])
def test_over_flare(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank example, each party's file in another order and without some of the others' customers."""
    files = tmp_path / "bank"
    files.mkdir()
    cut = {}
    for seed, name in enumerate(NAMES):
        cut[name] = pd.read_csv(BANK / f"{name}.csv").sample(700, random_state=seed)
        cut[name].to_csv(files / f"{name}.csv", index=False)
    monkeypatch.setattr("flare_trial.BANK", files)
    job = job_folder(tmp_path, f'[align]\nmode = "{mode}"\n{ALIGNED_FIT}')
    run = cn.Run.load(simulate(tmp_path, job) / "fitted")
    table = cut["bank"].merge(cut["telephone"], on="customer").merge(cut["shop"], on="customer")
    features = table[[name for name in table.columns if name not in ("customer", "card_spending")]]
    theirs = Ridge(alpha=0.1 * len(table), solver="svd").fit(features, table["card_spending"])
    np.testing.assert_allclose(run.model.predict(features.to_numpy()), theirs.predict(features), rtol=1e-6)
