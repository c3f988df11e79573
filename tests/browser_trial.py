"""Runs to make pages of, and a real browser to open them with."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.ledger import Entry, Ledger

CHROMIUM = Path("/usr/bin/chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run", "--disable-sync"]
SPLIT = cn.HoldOut(0.2)
# What breaks out of text, attributes, comments, scripts, styles and CDATA; turns text round; and is long.
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]><svg onload=alert(1)>",
    "--><b>",
    "</style><script>alert(2)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "a\u202eb\u2066c\u200f\x00\x1b[31m\n",
    "[x](javascript:alert(1))|`*_#",
    "x" * 100_000,
    "<" * 100_000,
)


@contextmanager
def browser() -> Iterator[Any]:
    """Give a real Chromium, or skip."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not here")
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not here")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=str(CHROMIUM), args=QUIET)
        try:
            yield opened
        finally:
            opened.close()


def kept(name: str, tmp_path: Path) -> Path:
    """Say where a screenshot is kept: in the folder that COLONNADE_SCREENSHOTS names, if it does."""
    folder = Path(os.environ.get("COLONNADE_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def columns(n_rows: int = 2000) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6)) * [1, 10, 100, 0.1, 1, 1]
    X[:, 5] = 3.0  # constant
    return X, X @ [2.0, 0.3, 0.01, 5.0, 0.0, 0.0] + rng.normal(size=n_rows)


def judged(federation: cn.Federation, task: Any, size: int = 300) -> cn.Run[Any]:
    run: cn.Run[Any] = federation.fit(task, sampler=cn.ImportanceSampling(size=size), split=SPLIT, seed=1)
    best: cn.Run[Any] = federation.fit(task, sampler=cn.AllRows(), split=SPLIT)
    return run.with_findings(
        federation.evaluate(run.model, split=SPLIT),
        all_rows=federation.evaluate(best.model, split=SPLIT),
        certificate=federation.certify(run, rows=100),
    )


def regression() -> cn.Run[Any]:
    X, y = columns()
    return judged(cn.Federation(cn.split_columns(X, y, [2, 2, 2])), cn.Regression())


def classification() -> cn.Run[Any]:
    X, y = columns()
    late = np.where(y + np.random.default_rng(1).logistic(size=len(y)) > 0, "late", "on time")
    return judged(cn.Federation(cn.split_columns(X, late, [2, 2, 2])), cn.Classification(l2=1e-4))


def clustering() -> cn.Run[Any]:
    X, _ = columns()
    return judged(cn.Federation(cn.split_columns(X, None, [2, 2, 2])), cn.KMeans(4, standardize=True))


def hostile() -> cn.Run[Any]:
    """A run whose parties, columns, label and classes have names of the worst kind; and so its messages."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, len(HOSTILE)))
    run = judged(
        cn.Federation(cn.split_columns(X, np.where(X[:, 0] > 0, "yes", "no"), [4, 6])), cn.Classification(l2=0.1), 60
    )
    return renamed(run)


def renamed(run: cn.Run[Any]) -> cn.Run[Any]:
    """Give all that has a name one of the worst kind, as a file of anyone's making may."""
    from dataclasses import replace

    import msgspec

    parties = dict(zip(run.roster.names, HOSTILE[1:], strict=False))
    names = tuple(HOSTILE[i % len(HOSTILE)] + str(i) for i in range(len(run.roster.feature_names)))
    cards, start = [], 0
    for card in run.roster.cards:
        label = None if card.label_name is None else HOSTILE[2]
        own = names[start : start + card.n_features]
        cards.append(replace(card, name=parties[card.name], feature_names=own, label_name=label))
        start += card.n_features
    model = msgspec.structs.replace(
        run.model,
        feature_names_in_=names,
        parts_={parties[party]: width for party, width in run.model.parts_.items()},
        classes_=(HOSTILE[0], HOSTILE[8]),
    )
    entries = [
        msgspec.structs.replace(
            entry,
            sender=parties.get(entry.sender, entry.sender),
            receiver=parties.get(entry.receiver, entry.receiver),
            kind=HOSTILE[3],
            phase=HOSTILE[9],
        )
        for entry in run.ledger
    ]
    report = run.findings.evaluation
    lines = tuple(
        msgspec.structs.replace(line, name=name) for line, name in zip(report.by_class, HOSTILE, strict=False)
    )
    return replace(
        run,
        roster=replace(run.roster, cards=tuple(cards)),
        model=model,
        ledger=Ledger(entries, run_by=HOSTILE[9]),
        why=HOSTILE[0] + HOSTILE[8],
        versions={HOSTILE[0]: HOSTILE[9]},
        findings=msgspec.structs.replace(run.findings, evaluation=msgspec.structs.replace(report, by_class=lines)),
    )


def huge() -> cn.Run[Any]:
    """A run of 50 parties, 1,000 columns, 200 clusters and 10,000 messages."""
    from dataclasses import replace

    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1000))
    federation = cn.Federation(cn.split_columns(X, None, [20] * 50))
    run: cn.Run[Any] = federation.fit(cn.KMeans(200, n_starts=1), sampler=cn.ImportanceSampling(size=400))
    run = run.with_findings(federation.evaluate(run.model))
    one = list(run.ledger)
    entries = [Entry(f"phase {i // 500}", i, *_rest(one[i % len(one)])) for i in range(10_000)]
    return replace(run, ledger=Ledger(entries))


def _rest(entry: Entry) -> tuple[Any, ...]:
    return (entry.sender, entry.receiver, entry.kind, entry.units, entry.bytes, entry.reveals, entry.numbers)
