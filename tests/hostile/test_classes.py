"""Classes of a label: which ones there are is told once, before anything else; draws by class tell them row by row."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.job_sheets import sheet_of
from colonnade.messages import Reveals
from colonnade.protocol.classes import AskClasses, Classes
from colonnade.protocol.viewing import Moments, UseFrame
from colonnade.sampling.plain.messages import AskTotal, DrawnRows, Total
from colonnade.sampling.rules.classes import ClassScores, class_rule
from colonnade.tasks.jobs import draw
from hostile_trial import N_ROWS, HostileServer, hostile_server, made_parties, turned_away

TARGET = "party3"
TASK = cn.Classification(l2=0.01)
SAMPLER, BLIND = cn.ImportanceSampling(40), cn.ImportanceSampling(40, class_blind=True)
KEEPS_LABELS = {"level": "open", "never": ["labels"]}


def parties_with(labels: Any) -> list[cn.Party]:
    *others, target = made_parties()
    columns = target.table.take(np.arange(N_ROWS))[:, : len(target.table.feature_names)]
    return [*others, cn.Party(TARGET, columns, label=labels)]


def half() -> Any:
    return np.where(np.arange(N_ROWS) % 2, 1.0, 0.0)


def opened(server: HostileServer, sampler: Any, split: cn.HoldOut | None = None) -> None:
    what = {"task": TASK, "sampler": sampler, "split": split}
    server.open_each({TARGET: sheet_of("coreset", what, server.roster, None)})
    if split is not None:
        server.told(TARGET, UseFrame("train", "own", split, None, None), Moments)


def test_draws_by_class_tell_the_class_of_drawn_rows(tmp_path: Path) -> None:
    """What an owner who keeps labels is asked to allow: its draws are of a rare class far more often than of others."""
    rare, sampler = np.where(np.arange(N_ROWS) < 3, 1.0, 0.0), cn.ImportanceSampling(400)
    with hostile_server(tmp_path, parties_with(rare), {"level": "open"}) as server:
        server.honestly(draw(TASK, sampler, None, server.roster, 0), "coreset", task=TASK, sampler=sampler)
        (drawn,) = (reply for party, reply in server.received if party == TARGET and isinstance(reply, DrawnRows))
    often = np.bincount(drawn.rows, minlength=N_ROWS)
    assert often[:3].min() > 5 * np.median(often[3:])
    assert Reveals.LABELS in server.disclosed(TARGET)


@pytest.mark.parametrize("policy", [KEEPS_LABELS, {"level": "strict"}], ids=["labels", "strict"])
def test_an_owner_who_keeps_labels_draws_nothing_by_class(tmp_path: Path, policy: dict[str, Any]) -> None:
    with hostile_server(tmp_path, parties_with(half()), policy) as server:
        turned_away(lambda: opened(server, SAMPLER), "never reveals labels, which a Classes would")
        assert server.disclosed(TARGET) == set()


def test_a_blind_sheet_is_played_blind(tmp_path: Path) -> None:
    with hostile_server(tmp_path, parties_with(half()), KEEPS_LABELS) as server:
        rule = class_rule(ClassScores(fit_intercept=True), server.roster)
        opened(server, BLIND)
        turned_away(lambda: server.told(TARGET, AskClasses(40), Classes), "the job sheet says 0")
        opened(server, BLIND)
        server.told(TARGET, AskClasses(0), Classes)
        turned_away(lambda: server.told(TARGET, AskTotal(rule), Total), "the job sheet says")
        assert Reveals.LABELS not in server.disclosed(TARGET)


def test_what_draws_tell_is_said_before_they_are_made(tmp_path: Path) -> None:
    with hostile_server(tmp_path, parties_with(half()), {"level": "open"}) as server:
        rule = class_rule(ClassScores(fit_intercept=True), server.roster)
        opened(server, SAMPLER)
        turned_away(lambda: server.told(TARGET, AskTotal(rule), Total), "AskClasses would be next")


@pytest.mark.parametrize("sharpened", [False, True])
def test_no_choice_of_rows_tells_which_have_a_rare_class(tmp_path: Path, sharpened: bool) -> None:
    """Splits of a thousand seeds would, if classes were those of the rows that count: so do totals by class."""
    rare = half()
    rare[7] = 2.0
    with hostile_server(tmp_path, parties_with(rare), {"level": "open"}) as server:
        rule, told = class_rule(ClassScores(fit_intercept=True), server.roster, sharpened=sharpened), []
        for seed in range(12):
            opened(server, cn.ImportanceSampling(40, sharpened=sharpened), cn.HoldOut(0.5, seed))
            classes = server.told(TARGET, AskClasses(40), Classes)
            told.append((tuple(classes.values.tolist()), round(server.told(TARGET, AskTotal(rule), Total).total, 6)))
    assert len(set(told)) == 1


def test_classes_of_few_rows_are_not_told(tmp_path: Path) -> None:
    rare = half()
    rare[:4] = 2.0
    with hostile_server(tmp_path, parties_with(rare), {"level": "usual"}) as server:
        opened(server, BLIND)
        turned_away(lambda: server.told(TARGET, AskClasses(0), Classes), "10 rows at least.*a class of the label")


def test_values_of_a_number_are_no_classes(tmp_path: Path) -> None:
    with hostile_server(tmp_path, parties_with(np.arange(N_ROWS) / 7), {"level": "usual"}) as server:
        opened(server, BLIND)
        turned_away(lambda: server.told(TARGET, AskClasses(0), Classes), "10 rows at least")
        assert server.disclosed(TARGET) == set()


def test_only_the_label_party_is_asked(tmp_path: Path) -> None:
    with hostile_server(tmp_path, parties_with(half()), {"level": "open"}) as server:
        sheet = sheet_of("coreset", {"task": TASK, "sampler": BLIND}, server.roster, None)
        server.open_each({"party1": sheet})
        turned_away(lambda: server.told("party1", AskClasses(0), Classes), "AskTotal would be next")
