"""Attack 5: models of the server's choice, applied to single rows, plainly, rounded, audited, or under masks.

Before there were job sheets, a model of one coefficient told a column, exact, by one request; so did masked sums in
which the other parties' coefficients were 0. That a model is the honest solution cannot be checked, and a server may
tell parties any at the end of an honest run: what such models give is refused, or counted.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import Model
from colonnade.evaluation.linear import AskPartialPredictions, PartialPredictions
from colonnade.evaluation.masked.messages import MaskedPredictions, SummedLosses
from colonnade.evaluation.masked.server import AppliedModel, masked_losses
from colonnade.evaluation.telling import ModelKept, TellModel
from colonnade.kernels.arrays import Floats
from colonnade.kernels.selections import ListedRows
from colonnade.messages import Reveals
from colonnade.sampling.selecting import Ready, UseAllRows, use_counted_rows, use_even_draw
from colonnade.tasks.jobs import deliver_in_secret, evaluate, evaluate_in_secret, learn, predict
from hostile_trial import N_ROWS, HostileServer, features_of, hostile_server, made_parties, one_hot, turned_away

TARGET, WIDTH = "party2", 4
NO_RAW_DATA = {"never": ["features", "labels"]}
STRICT = {"level": "strict"}
TASK, GRAM, ALL = cn.Regression(), cn.SecureGram(), cn.AllRows()


def tell(server: HostileServer, model: Model[Any]) -> None:
    """Learn honestly on all rows, and tell the parties another model in the end: they will know it again."""
    server.new_run(task=TASK, sampler=ALL, solver=GRAM)
    server.play_until(learn(TASK, ALL, GRAM, None, server.roster, 0), TellModel)
    parts = model.parts(server.roster)
    server.told_by_each({party: TellModel(*part) for party, part in parts.items()}, ModelKept)


def of_column(server: HostileServer, column: int) -> cn.LinearModel:
    """Make a model of zeros but for a 1 among the target's columns."""
    names, start = server.roster.feature_names, server.roster.parts[TARGET].start
    return cn.LinearModel(one_hot(start + column, len(names)), 0.0, names)


def of_all_columns(server: HostileServer) -> cn.KMeansModel:
    """Make centres at 0 and one unit along each of the target's columns."""
    names, here = server.roster.feature_names, server.roster.parts[TARGET]
    return cn.KMeansModel(np.vstack([np.zeros(len(names)), np.eye(len(names))[here]]), names)


def by_predictions(server: HostileServer) -> None:
    """Predictions of all rows are a column."""
    model = of_column(server, 0)
    tell(server, model)
    server.honestly(predict(model, None, None, None, server.roster), "predict", model=model)


def by_rounded_predictions(server: HostileServer) -> None:
    """The same in 32 bits."""
    model = of_column(server, 0)
    tell(server, model)
    server.honestly(predict(model, None, None, 32, server.roster), "predict", model=model, bits=32)


def by_distances(server: HostileServer) -> None:
    """Squared distances to 0 and to each unit vector: half of what they differ by is a column."""
    model = of_all_columns(server)
    tell(server, model)
    server.honestly(predict(model, None, None, None, server.roster), "predict", model=model)


def by_residuals(server: HostileServer) -> None:
    """A model of zeros less the label is the label."""
    model = cn.LinearModel(np.zeros(10), 0.0, server.roster.feature_names)
    tell(server, model)
    server.honestly(evaluate(model, None, None, None, server.roster, 0), "evaluate", model=model, seed=0)


def by_audit(server: HostileServer) -> None:
    """All columns as directions of one audit, which rounding is said to have hidden."""
    model = of_column(server, 0)
    tell(server, model)
    server.new_run("certify", task=TASK, model=model, rows=N_ROWS, options={"directions": 1 + WIDTH})


def by_row_distances(server: HostileServer) -> None:
    """Distances of rows to rows: one party's rows up to a rotation and a shift."""
    server.new_run("diagnose", task=cn.KMeans(n_clusters=2), rows=N_ROWS)


@pytest.mark.parametrize(
    ("attack", "reply"),
    [
        (by_predictions, "PartialPredictions"),
        (by_rounded_predictions, "RoundedParts"),
        (by_distances, "PartialPredictions"),  # either may come by the sheet of a prediction
        (by_residuals, "PartialPredictions"),
        (by_audit, "AuditedPredictions"),
        (by_row_distances, "RowDistances"),
    ],
)
def test_what_models_give_of_rows_counts_as_features(
    tmp_path: Path, attack: Callable[[HostileServer], None], reply: str
) -> None:
    with hostile_server(tmp_path, made_parties(), NO_RAW_DATA) as server:
        turned_away(lambda: attack(server), f"never reveals features, which a {reply} would")
        assert not server.disclosed() & {Reveals.FEATURES, Reveals.LABELS, Reveals.PREDICTIONS}


def test_only_models_that_were_told_are_applied(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        model = of_column(server, 0)
        script = predict(model, None, None, None, server.roster)
        turned_away(lambda: server.honestly(script, "predict", model=model), "applies only models that it helped")
        tell(server, model)
        server.new_run("predict", model=model)
        server.told(TARGET, UseAllRows(), Ready)
        other = AskPartialPredictions(one_hot(1, WIDTH), False, False, 0, N_ROWS)
        turned_away(lambda: server.told(TARGET, other, PartialPredictions), "the job sheet says what has the digest")
        assert Reveals.FEATURES not in server.disclosed()


def test_predictions_count_against_the_rows_of_a_day(tmp_path: Path) -> None:
    with hostile_server(tmp_path, made_parties(), {"rows_a_day": 2 * N_ROWS}) as server:
        found = []

        def attack() -> None:
            for column in range(WIDTH):
                model = of_column(server, column)
                tell(server, model)
                found.append(server.honestly(predict(model, None, None, None, server.roster), "predict", model=model))

        turned_away(attack, "limits replies to 200 rows a day; 200 were sent today")
        assert len(found) == 2


def delivered(server: HostileServer, model: Model[Any], to: str) -> Floats:
    """Tell a model, and deliver what it gives to a party that joins forces."""
    tell(server, model)
    server.honestly(deliver_in_secret(model, None, to, server.roster), "deliver", model=model, to=to)
    return server.delivered_to(to)


def test_masked_sums_tell_a_third_of_the_columns_to_a_party_that_joins_forces(tmp_path: Path) -> None:
    """The others' coefficients are 0. Of four columns it is one, for all time."""
    parties = made_parties()
    with hostile_server(tmp_path, parties, STRICT) as server:
        found = delivered(server, of_column(server, 0), "party3")
        turned_away(lambda: delivered(server, of_column(server, 1), "party3"), "applies 1 models in all")
        assert server.disclosed() == {Reveals.TOTALS, Reveals.MOMENTS}
    np.testing.assert_allclose(found, features_of(parties[1])[:, 0], atol=1e-8)


def test_a_clustering_counts_as_many_models_as_it_has_centres(tmp_path: Path) -> None:
    """Who learns distances to 0 and to each unit vector has all columns, by one model."""
    with hostile_server(tmp_path, made_parties(), STRICT) as server:
        turned_away(lambda: delivered(server, of_all_columns(server), "party3"), "with this it would be 5")


def test_losses_of_two_runs_do_not_differ_by_a_row(tmp_path: Path) -> None:
    """Costs of 50 rows and of 51 differ by one value squared."""
    with hostile_server(tmp_path, made_parties(), NO_RAW_DATA) as server:
        model = of_column(server, 0)
        tell(server, model)

        def attack() -> None:
            for fraction in (0.5, 0.49):
                split = cn.HoldOut(fraction, 0)
                script = evaluate_in_secret(model, None, split, "party1", server.roster, 0)
                server.honestly(script, "evaluate", model=model, split=split, by="party1", seed=0)

        turned_away(attack, "1 rows apart from a sum that it has told before")
        assert len([1 for _, reply in server.received if isinstance(reply, SummedLosses)]) == 1


def losses_by_intercepts(server: HostileServer, model: cn.LinearModel, count: int) -> list[float]:
    """Evaluate one model with many intercepts: absolute residuals, summed, bend where an intercept is a residual.

    As many as there are rows, or some more, tell all residuals; and those of even draws tell whose they are.
    """
    found = []
    for intercept in np.linspace(-10, 10, count):
        server.new_run("evaluate", model=model, by="party1", seed=0)
        rows = server.play(use_counted_rows(server.roster))
        applied = AppliedModel(model.coef_, None, None, float(intercept), "party1", evaluating=True, by_weight=True)
        losses, _, _ = server.play(masked_losses(server.roster, rows, applied))
        found.append(losses.absolute)
    return found


def test_losses_by_many_intercepts_are_counted(tmp_path: Path) -> None:
    """The evaluating party has 40 values, half of which it tells as numbers: 6 to learn, 4 evaluations of 3."""
    with hostile_server(tmp_path, made_parties(40, (1, 4, 3)), {"never": ["features", "labels", "scores"]}) as server:
        model = of_column(server, 0)
        tell(server, model)
        turned_away(lambda: losses_by_intercepts(server, model, 50), "for each of its values")
        assert len([1 for _, reply in server.received if isinstance(reply, SummedLosses)]) == 4


def losses_of_few_rows(server: HostileServer, model: cn.LinearModel, count: int, size: int) -> list[float]:
    """Evaluate one model with many intercepts on the same few rows, in a table with values enough for all of them."""
    found = []
    for intercept in np.linspace(0, 14, count):
        server.new_run("evaluate", model=model, rows=size, by="party1", seed=0)
        drawn = server.play(use_even_draw(server.roster, size, np.random.default_rng([0, 0])))
        applied = AppliedModel(model.coef_, None, None, float(-intercept), "party1", evaluating=True, by_weight=False)
        losses, _, _ = server.play(masked_losses(server.roster, ListedRows(drawn.rows, drawn.weights), applied))
        found.append(losses.absolute)
    return found


def test_losses_of_few_rows_are_counted_by_row(tmp_path: Path) -> None:
    """Half of 600 values are 100 evaluations of three numbers: of the same 30 rows, they told all residuals."""
    with hostile_server(tmp_path, made_parties(200), {"never": ["features", "labels", "scores"]}) as server:
        model = of_column(server, 0)
        tell(server, model)
        why = "numbers for a value of a single row, by its part in sums"
        turned_away(lambda: losses_of_few_rows(server, model, 90, 30), why)
        assert len([1 for _, reply in server.received if isinstance(reply, SummedLosses)]) < 5


def test_the_spread_of_labels_is_of_enough_rows(tmp_path: Path) -> None:
    """An evaluation on two rows drawn by a seed of the server's choice: their labels' spread is how far they differ."""
    with hostile_server(tmp_path, made_parties(), STRICT) as server:
        model = of_column(server, 0)
        tell(server, model)
        script = evaluate_in_secret(model, 2, None, "party1", server.roster, 0)
        attack = lambda: server.honestly(script, "evaluate", model=model, rows=2, by="party1", seed=0)  # noqa: E731
        why = turned_away(attack, "sums over rows that count as 2 tell single ones")
        assert why.party == "party3", "the party with the label"
        spreads = [reply.label_spread for _, reply in server.received if isinstance(reply, MaskedPredictions)]
        assert spreads == [None, None]
