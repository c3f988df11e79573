"""Attack: windows of an evaluation of classes. A server that is free in one of them chooses which rows are added up.

Sums are told with the last window alone. A window that is left out, asked twice, of another model, or of other rows,
would make two sums differ by a few rows, and a row's label is a difference of sums.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    BringMaskedClasses,
    ClassLosses,
    MaskedClassLosses,
    told_of,
)
from colonnade.evaluation.classes.party import NOTHING_TOLD
from colonnade.evaluation.masked.messages import BringMasked, MaskedReceived
from colonnade.kernels import selections
from colonnade.kernels.blocks import BLOCK_ROWS
from colonnade.messages import Message, sendable_floats
from colonnade.sampling.selecting import Ready, UseAllRows
from colonnade.tasks.jobs import evaluate_in_secret
from hostile_trial import HostileServer, hostile_server, turned_away

N_ROWS = 2 * BLOCK_ROWS + 100
ENDS = [(0, BLOCK_ROWS), (BLOCK_ROWS, 2 * BLOCK_ROWS), (2 * BLOCK_ROWS, N_ROWS)]
LABEL_PARTY = "b"


def parties() -> list[cn.Party]:
    X = np.random.default_rng(0).normal(size=(N_ROWS, 2))
    return [cn.Party("a", X[:, :1]), cn.Party("b", X[:, 1:], label=(X.sum(axis=1) > 0).astype(float))]


def window(place: int, **other: Any) -> AskClassLosses:
    first, stop = ENDS[place]
    fields: dict[str, Any] = {
        "coef": sendable_floats([1.0]),
        "others": sendable_floats(np.zeros(stop - first)),
        "intercepts": sendable_floats([0.0]),
        "values": sendable_floats([0.0, 1.0]),
        "names": None,
        "by_weight": True,
        "first": first,
        "stop": stop,
    }
    return AskClassLosses(**{**fields, **other})


def begin(server: HostileServer) -> None:
    """Open an honest evaluation of a model of the server's choice."""
    model = cn.ClassificationModel(np.ones((1, 2)), np.zeros(1), (0, 1), server.roster.feature_names)
    server.new_run("evaluate", model=model, seed=0)
    server.told_by_all(UseAllRows(), Ready)


def ask(server: HostileServer, *asked: AskClassLosses) -> list[ClassLosses]:
    return [server.told(LABEL_PARTY, each, ClassLosses) for each in asked]


def test_windows_of_an_evaluation_are_those_of_one_model_each_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    other = {"intercepts": sendable_floats([0.5])}
    turned = {"values": sendable_floats([1.0, 0.0])}
    more = {"others": sendable_floats(np.zeros(BLOCK_ROWS + 1))}
    attacks: list[Callable[[HostileServer], object]] = [
        lambda server: ask(server, window(1)),
        lambda server: ask(server, window(2)),
        lambda server: ask(server, window(0), window(0)),
        lambda server: ask(server, window(0), window(2)),
        lambda server: ask(server, window(0), window(1, **other)),
        lambda server: ask(server, window(0), window(1, **turned)),
        lambda server: ask(server, window(0), window(1, coef=sendable_floats([2.0]))),
        lambda server: ask(server, window(0), window(1, by_weight=False)),
        lambda server: ask(server, window(0), window(1, **more)),
        lambda server: ask(
            server, window(0), window(1, stop=N_ROWS, others=sendable_floats(np.zeros(N_ROWS - BLOCK_ROWS)))
        ),
        lambda server: ask(server, window(0, others=sendable_floats(np.full(BLOCK_ROWS, np.nan)))),
        lambda server: ask(server, window(0, others=sendable_floats(np.full(BLOCK_ROWS, 1e101)))),
        lambda server: [ask(server, window(0)), server.told_by_all(UseAllRows(), Ready)],
        lambda server: ask(server, window(0), window(1), window(2), window(2)),
        lambda server: ask(server, window(0), window(1), window(2), window(0)),
    ]
    with hostile_server(tmp_path, parties(), {"level": "open"}) as server:
        for attack in attacks:
            begin(server)
            turned_away(partial(attack, server), "job sheet|sent a|took part|no longer in this run")
        begin(server)
        *nothing, told = ask(
            server, window(0), window(1, others=sendable_floats(np.full(BLOCK_ROWS, 1e100))), window(2)
        )
    assert [len(each) for reply in nothing for each in told_of(reply)] == [0] * 8
    assert [len(each) for each in told_of(NOTHING_TOLD)] == [0] * 4
    assert told.confusion.sum() == N_ROWS
    assert all(np.isfinite(each).all() for each in told_of(told))


def test_who_never_tells_labels_is_asked_for_no_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    with hostile_server(tmp_path, parties(), {"level": "open", "never": ["labels"]}) as server:
        turned_away(partial(begin, server), "never reveals labels")


def masked(server: HostileServer, kind: type[Message]) -> Any:
    """Evaluate honestly under masks, until the label party is brought, or asked, something of this kind."""
    model = cn.ClassificationModel(np.ones((1, 2)), np.zeros(1), (0, 1), server.roster.feature_names)
    server.new_run("evaluate", model=model, by=LABEL_PARTY, seed=0)
    script = evaluate_in_secret(model, None, None, LABEL_PARTY, server.roster, 0)
    return server.play_until(script, kind)[LABEL_PARTY]


def test_windows_under_masks_are_those_of_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    others: list[dict[str, Any]] = [
        {"intercepts": sendable_floats([0.5])},
        {"values": sendable_floats([1.0, 0.0])},
        {"names": ("0", "1")},
        {"first": 0},
        {"first": BLOCK_ROWS, "stop": 2 * BLOCK_ROWS},
    ]
    with hostile_server(tmp_path, parties(), {"level": "open"}) as server:
        for other in others:
            lie = msgspec.structs.replace(masked(server, AskMaskedClassLosses), **other)
            turned_away(partial(server.told, LABEL_PARTY, lie, MaskedClassLosses), "sent a|took part|other classes")
        brought = masked(server, BringMaskedClasses)
        line = BringMasked(brought.parts, 0.0, brought.first, brought.stop)
        turned_away(partial(server.told, LABEL_PARTY, line, MaskedReceived), "job sheet")
        brought = masked(server, BringMaskedClasses)
        last = AskMaskedClassLosses(*(getattr(brought, name) for name in brought.__struct_fields__))
        turned_away(partial(server.told, LABEL_PARTY, last, MaskedClassLosses), "job sheet")
        assert not any(isinstance(reply, MaskedClassLosses) for _, reply in server.received)


def test_floors_hold_at_the_first_window_under_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "WINDOW_NUMBERS", 1)
    with hostile_server(tmp_path, parties(), {"level": "open", "least_rows": N_ROWS + 1}) as server:
        brought = masked(server, BringMaskedClasses)
        assert brought.first == 0
        turned_away(partial(server.told, LABEL_PARTY, brought, MaskedReceived), f"{N_ROWS + 1} rows at least")
