"""Attack: labels from an evaluation. A server chooses logits, intercepts or rows, and reads labels from losses.

Losses are sums, but with all rows but one at logits of a thousand, the sum is that row's label; and with logits that
are powers of two, the digits of one sum are fifty labels. So a policy counts as labels what the label party makes of
logits that the server brings. Under masks the other parties sign their parts: a server is left with the choice of
models, intercepts and rows, and each is counted.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.evaluation.classes.messages import (
    AskClassLosses,
    AskMaskedClassLosses,
    ClassLosses,
    MaskedClassLosses,
)
from colonnade.evaluation.classes.server import AppliedClasses, masked_class_losses
from colonnade.evaluation.telling import ModelKept, TellModel
from colonnade.kernels.arrays import Floats
from colonnade.kernels.selections import CountedRows, ListedRows
from colonnade.messages import Reveals, sendable_floats
from colonnade.sampling.selecting import Ready, UseAllRows, use_counted_rows, use_even_draw
from colonnade.tasks.jobs import evaluate_in_secret, learn
from hostile_trial import HostileServer, columns_of, hostile_server, turned_away

N_ROWS = 600
NO_LABELS = {"never": ["features", "labels", "scores"]}


def yes_no_parties(n_rows: int = N_ROWS) -> list[cn.Party]:
    """Make three parties, the last of which holds 0 or 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    return cn.split_columns(X, (X.sum(axis=1) + rng.logistic(size=n_rows) > 0).astype(float), [2, 2, 2])


def labels_of(parties: list[cn.Party]) -> Floats:
    return columns_of(parties[2])[:, -1]


def model_of(server: HostileServer, coef: Floats) -> cn.ClassificationModel:
    """Make a model of the server's choice."""
    return cn.ClassificationModel(coef[np.newaxis], np.zeros(1), (0, 1), server.roster.feature_names)


def tell(server: HostileServer, model: Any) -> None:
    """Learn a line honestly, without rows, and tell the parties another model in the end: they will know it again."""
    task, sampler, solver = cn.Regression(), cn.AllRows(), cn.SecureGram()
    server.new_run(task=task, sampler=sampler, solver=solver)
    server.play_until(learn(task, sampler, solver, None, server.roster, 0), TellModel)
    parts = model.parts(server.roster)
    server.told_by_each({party: TellModel(*part) for party, part in parts.items()}, ModelKept)


def ask_losses(server: HostileServer, model: Any, others: Floats, intercept: float = 0.0) -> ClassLosses:
    """Open an honest evaluation, and bring the label party logits of the server's choice."""
    server.new_run("evaluate", model=model, seed=0)
    server.told_by_all(UseAllRows(), Ready)
    own = sendable_floats(np.zeros(2))
    known = sendable_floats([intercept]), sendable_floats([0.0, 1.0]), None
    request = AskClassLosses(own, sendable_floats(others), *known, True, 0, len(others))
    return server.told("party3", request, ClassLosses)


def test_logits_of_powers_of_two_read_fifty_labels_where_labels_may_be_told(tmp_path: Path) -> None:
    """What the policy is for: a row of class 0 costs its logit, a row of class 1 nothing."""
    parties = yes_no_parties()
    with hostile_server(tmp_path, parties, {"level": "open"}) as server:
        model = model_of(server, np.zeros(6))
        others = np.full(N_ROWS, 0.0)
        others[:45] = 2.0 ** np.arange(7, 52)
        cost = ask_losses(server, model, others).sums[0] - (N_ROWS - 45) * np.log(2)
    digits = (round(cost / 2.0**7) >> np.arange(45)) & 1
    np.testing.assert_array_equal(digits, 1 - labels_of(parties)[:45])


def by_chosen_logits(server: HostileServer, model: Any) -> object:
    """One row at 0, all others far off."""
    others = np.full(N_ROWS, 1000.0)
    others[7] = 0.0
    return ask_losses(server, model, others)


def by_honest_logits(server: HostileServer, model: Any) -> object:
    """The same question as an honest server asks: a party cannot tell."""
    return ask_losses(server, model, np.zeros(N_ROWS))


@pytest.mark.parametrize("attack", [by_chosen_logits, by_honest_logits])
@pytest.mark.parametrize("policy", [NO_LABELS, {"level": "strict"}], ids=["never", "strict"])
def test_who_never_tells_labels_compares_no_logits_that_the_server_brings(
    tmp_path: Path, attack: Callable[[HostileServer, Any], object], policy: dict[str, Any]
) -> None:
    with hostile_server(tmp_path, yes_no_parties(), policies={"party3": policy}) as server:
        model = model_of(server, np.zeros(6))
        tell(server, model)
        why = turned_away(
            lambda: attack(server, model), "never reveals labels, which a ClassLosses would. Use evaluate"
        )
        assert why.party == "party3"
        assert not [1 for _, reply in server.received if isinstance(reply, ClassLosses)]


def test_chosen_logits_are_counted_where_labels_may_be_told(tmp_path: Path) -> None:
    """At the usual level: 600 rows, 39 numbers a question, half a number for a value of each row."""
    with hostile_server(tmp_path, yes_no_parties()) as server:
        model, rng, told = model_of(server, np.zeros(6)), np.random.default_rng(1), []
        tell(server, model)

        def attack() -> None:
            while True:
                told.append(ask_losses(server, model, rng.normal(size=N_ROWS)))

        turned_away(attack, "numbers for a value of a single row, by its part in sums")
        assert len(told) == 7


def losses_by_intercepts(server: HostileServer, model: Any, told: list[Floats], size: int | None = None) -> None:
    """Move the threshold: how many of each class have larger logits, for as many thresholds as rows, is every label."""
    coef = model.coef_[0]
    for intercept in np.linspace(-3, 3, 200):
        server.new_run("evaluate", model=model, rows=size, by="party3", seed=0)
        selected: CountedRows | ListedRows
        if size is None:
            selected = server.play(use_counted_rows(server.roster))
        else:
            drawn = server.play(use_even_draw(server.roster, size, np.random.default_rng([0, 0])))
            selected = ListedRows(drawn.rows, drawn.weights)
        applied = AppliedClasses(coef, np.array([intercept]), (0, 1))
        script = masked_class_losses(server.roster, selected, applied, "party3", by_weight=size is None)
        told.append(server.play(script).metrics.confusion)


def test_thresholds_under_masks_are_counted(tmp_path: Path) -> None:
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        told: list[Floats] = []
        tell(server, model)
        turned_away(lambda: losses_by_intercepts(server, model, told), "for a value of a single row, by its part")
        assert len(told) == 7
        assert server.disclosed("party3") <= {Reveals.TOTALS, Reveals.MOMENTS}


def test_thresholds_of_few_rows_are_counted_by_row(tmp_path: Path) -> None:
    """60 of 600 rows, in whose table there are values enough."""
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        told: list[Floats] = []
        tell(server, model)
        turned_away(lambda: losses_by_intercepts(server, model, told, 60), "for a value of a single row, by its part")
        assert len(told) < 4


def test_two_evaluations_do_not_differ_by_a_row(tmp_path: Path) -> None:
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        tell(server, model)

        def attack() -> None:
            for fraction in (0.5, 0.5 - 1 / N_ROWS):
                split = cn.HoldOut(fraction, 0)
                script = evaluate_in_secret(model, None, split, "party3", server.roster, 0)
                server.honestly(script, "evaluate", model=model, split=split, by="party3", seed=0)

        turned_away(attack, "1 rows apart from a sum that it has told before")
        assert len([1 for _, reply in server.received if isinstance(reply, MaskedClassLosses)]) == 1


def test_few_rows_are_not_evaluated_under_masks(tmp_path: Path) -> None:
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        tell(server, model)
        script = evaluate_in_secret(model, 2, None, "party3", server.roster, 0)
        attack = lambda: server.honestly(script, "evaluate", model=model, rows=2, by="party3", seed=0)  # noqa: E731
        turned_away(attack, "sums over rows that count as 2 tell single ones")


def test_parts_that_their_parties_did_not_sign_are_refused(tmp_path: Path) -> None:
    """A server adds a thousand to all rows but one, in masked numbers, which is as good as in the clear."""
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        tell(server, model)
        server.new_run("evaluate", model=model, by="party3", seed=0)
        script = evaluate_in_secret(model, None, None, "party3", server.roster, 0)
        (question,) = server.play_until(script, AskMaskedClassLosses).values()
        assert isinstance(question, AskMaskedClassLosses)
        words = np.frombuffer(question.parts[0].masked, np.uint8).copy()
        words[6::7] += 1
        changed = msgspec.structs.replace(question.parts[0], masked=words.tobytes())
        lie = msgspec.structs.replace(question, parts=(changed, *question.parts[1:]))
        turned_away(lambda: server.told("party3", lie, MaskedClassLosses), "signature")


def test_a_sheet_that_lets_another_party_evaluate_is_refused(tmp_path: Path) -> None:
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        tell(server, model)
        turned_away(
            lambda: server.new_run("evaluate", model=model, by="party1", seed=0), "another than the label party"
        )


def test_a_line_is_not_evaluated_as_classes_nor_classes_as_a_line(tmp_path: Path) -> None:
    """A sheet that names no classes takes the label off parts; one that does, never: the two are not mixed."""
    with hostile_server(tmp_path, yes_no_parties(), NO_LABELS) as server:
        model = model_of(server, np.ones(6))
        line = cn.LinearModel(np.ones(6), 0.0, server.roster.feature_names)
        tell(server, model)
        for on_sheet, asked in ((model, line), (line, model)):
            script = evaluate_in_secret(asked, None, None, "party3", server.roster, 0)
            attack = lambda s=script, m=on_sheet: server.honestly(s, "evaluate", model=m, by="party3", seed=0)  # noqa: E731
            turned_away(attack, "evaluating = ")
