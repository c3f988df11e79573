"""A table's fingerprint changes with names, values, weights and split, and with nothing else; and nobody can guess it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.data.tables import BLOCK_ROWS
from colonnade.privacy.identities import PinnedIdentity, identities_here, signing_key
from colonnade.protocol.fingerprints import FINGERPRINT_BYTES, Tables, fingerprint_of

HERE = identities_here(["bank", "shop"], os.urandom)["bank"]
DATA = np.random.default_rng(0).normal(size=(BLOCK_ROWS + 5, 3))
LABEL = np.arange(len(DATA), dtype=np.float64)


def printed(data: Any = DATA, **options: Any) -> bytes:
    return fingerprint_of(cn.Party("bank", data, **{"label": LABEL, **options}).table, HERE)


def changed(row: int, column: int) -> Any:
    other = DATA.copy()
    other[row, column] = np.nextafter(other[row, column], 9.0)
    return other


def test_the_same_table_has_the_same_however_it_lies_in_memory() -> None:
    assert printed() == printed(np.asfortranarray(DATA)) == printed(DATA.tolist())
    assert len(printed()) == FINGERPRINT_BYTES
    again = identities_here(["bank"], os.urandom)["bank"]
    assert fingerprint_of(cn.Party("bank", DATA, label=LABEL).table, again) == printed(), "the next process knows it"


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (changed(0, 0), {}),
        (changed(BLOCK_ROWS + 4, 2), {}),
        (DATA[::-1], {}),
        (DATA[:, ::-1], {}),
        (DATA, {"label": LABEL + 1}),
        (DATA, {"label": None}),
        (DATA, {"weight": np.ones(len(DATA))}),
        (DATA, {"split": np.arange(len(DATA)) % 2}),
    ],
)
def test_any_change_shows(data: Any, options: Any) -> None:
    assert printed(data, **options) != printed()


def test_who_lacks_the_secret_cannot_compute_it() -> None:
    table = cn.Party("bank", DATA).table
    secrets = [os.urandom(32) for _ in range(2)]
    found = {
        fingerprint_of(table, PinnedIdentity("bank", secret, {"bank": signing_key(secret)}, os.urandom))
        for secret in secrets
    }
    assert len(found) == 2
    assert fingerprint_of(table, None) == b""


def test_tables_are_compared() -> None:
    before = Tables(9, {"bank": "a", "shop": "b"})
    assert before.compared(Tables(9, {"bank": "a", "shop": "b"})) == "same"
    assert before.compared(Tables(9, {"bank": "a", "shop": "c"})) == "changed"
    assert before.compared(Tables(8, {"bank": "a", "shop": "c"})) == "new rows"
    assert Tables(9).compared(before) is None
    with pytest.raises(cn.AlignmentError, match="The table of shop changed since the model was learned"):
        before.require_unchanged(Tables(9, {"bank": "a", "shop": "c"}))


def federation(data: Any, label: Any = None) -> cn.Federation:
    return cn.Federation(cn.split_columns(data, data.sum(axis=1) if label is None else label, [2, 1]))


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(2)])
def test_a_model_knows_its_table_again_also_from_a_file(tmp_path: Path, task: Any) -> None:
    data = DATA[:300]
    run = federation(data).fit(task, sampler=cn.ImportanceSampling(size=100), split=cn.HoldOut(0.2))
    again = cn.Run.load(run.save(tmp_path / "run"))
    assert again.tables == run.tables == again.model.learned_from_
    assert set(again.tables.fingerprints) == {"party1", "party2"}  # type: ignore[union-attr]
    other = data.copy()
    other[7, 0] += 1.0
    report: Any = federation(data).evaluate(again.model, split=run.split)
    assert report.table == "same"
    assert federation(data).certify(again).table == "same"
    now = federation(other, data.sum(axis=1))
    with pytest.raises(cn.AlignmentError, match="The table of party1 changed since the model was learned"):
        now.evaluate(again.model)
    assert "Predictions" not in {entry.kind for entry in now.sent}, "it was noticed before anything was told"
    with pytest.raises(cn.AlignmentError, match="changed='allow'"):
        now.certify(again)
    report = now.evaluate(again.model, changed="allow")
    assert report.table == "changed"
    assert "the table has CHANGED since the run" in str(now.certify(again, changed="allow"))
    report = federation(DATA[:400]).evaluate(again.model)
    assert report.table == "new rows"
    with pytest.raises(cn.InputError, match="changed must be 'refuse' or 'allow'"):
        now.evaluate(again.model, changed="maybe")  # type: ignore[arg-type]
