from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

import browser_trial as trial
import colonnade as cn
from colonnade.report.remarks import remarks
from colonnade.report.repeating import snippet


@pytest.fixture(scope="module")
def run() -> cn.Run[Any]:
    return trial.regression()


def said(run: cn.Run[Any]) -> str:
    return "\n".join(remarks(run))


def changed(run: cn.Run[Any], **what: Any) -> cn.Run[Any]:
    return replace(run, findings=msgspec.structs.replace(run.findings, **what))


def test_a_sound_run_has_only_what_it_showed_to_say(run: cn.Run[Any]) -> None:
    (only,) = remarks(run)
    assert only.startswith("Features or labels of single rows were shown")


def test_few_effective_rows_are_told(run: cn.Run[Any]) -> None:
    weights = np.where(np.arange(len(run.coreset)) < 3, 500.0, 1e-3)
    uneven = replace(run, coreset=replace(run.coreset, weights=weights))
    assert "Weights are uneven: 300 rows count like 3 of equal weight" in said(uneven)
    assert "few rows for so many columns" in said(uneven)


def test_a_certificate_that_doubts_is_told_first(run: cn.Run[Any]) -> None:
    found = msgspec.structs.replace(run.findings.certificate, draws_p=1e-6, gradient_p=1e-6)
    doubted = list(remarks(changed(run, certificate=found)))
    assert [text.partition(":")[0] for text in doubted[:2]] == [
        "The certificate doubts the draws",
        "The certificate doubts the coreset",
    ]


def test_a_table_that_changed_is_told(run: cn.Run[Any]) -> None:
    report = msgspec.structs.replace(run.findings.evaluation, table="changed")
    assert "The evaluation is of a table that changed" in said(changed(run, evaluation=report))


def test_what_was_not_measured_is_told(run: cn.Run[Any]) -> None:
    text = said(changed(run, evaluation=None, certificate=None))
    assert "has not been measured" in text
    assert "has no certificate" in text
    assert "No rows were held out" in said(replace(run, split=None))


def test_the_snippet_repeats_the_run_to_the_last_bit(run: cn.Run[Any], tmp_path: Any, monkeypatch: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y = trial.columns()
    for place, card in enumerate(run.roster.cards):
        columns = dict(zip(card.feature_names, X[:, 2 * place : 2 * place + 2].T, strict=True))
        label = {} if card.label_name is None else {card.label_name: y}
        pq.write_table(pa.table({**columns, **label}), tmp_path / f"table{place + 1}.parquet")
    monkeypatch.chdir(tmp_path)
    there: dict[str, Any] = {}
    exec(snippet(run), there)  # noqa: S102  # it is our own, of names that are plain
    assert there["run"].model.coef_.tobytes() == run.model.coef_.tobytes()
