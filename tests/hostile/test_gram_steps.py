"""Classification without rows by a server that chooses directions, and by a label party that joins forces with it.

The server is told a gradient for each direction it names, and the label party is shown the others' columns in it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.kernels.arrays import Floats
from colonnade.messages import Reveals, sendable_floats
from colonnade.solvers.gram.shares.messages import AskStepShares, GramShares
from colonnade.solvers.gram.steps import party as label_side
from colonnade.solvers.gram.steps import server as honest
from colonnade.solvers.gram.steps.messages import AskStepColumn, AskStepPart, StepColumn, StepPart
from colonnade.tasks.jobs import learn
from hostile_trial import HostileServer, hostile_server, turned_away

N, M = 4000, 200
TASK, GRAM = cn.Classification(l2=1e-3), cn.SecureGram()
SAMPLER = cn.UniformSampling(M)
OUTLIER = 17


def made_table() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(N, 9))
    coef = np.append(0.0, 0.5 * rng.normal(size=8))  # the first column tells nothing
    labels = (features @ coef + rng.logistic(size=N) > 0).astype(float)
    return features, labels


X, Y = made_table()


def made_parties(features: Floats = X) -> list[cn.Party]:
    return cn.split_columns(features, Y, [3, 4, 2])


def opened(server: HostileServer, kind: Any, seed: int = 0) -> Any:
    """Play an honest job up to a request; give what would be asked."""
    server.new_run("fit", task=TASK, sampler=SAMPLER, solver=GRAM, seed=seed)
    return server.play_until(learn(TASK, SAMPLER, GRAM, None, server.roster, seed), kind)


def by_more_steps(server: HostileServer) -> None:
    """As many directions as the others have columns."""
    asked = opened(server, AskStepShares)
    server.told_by_each({party: replace(each, steps=7) for party, each in asked.items()}, GramShares)


def by_another_label_party(server: HostileServer) -> None:
    """Let somebody else be shown the others' columns."""
    asked = opened(server, AskStepShares)
    server.told_by_each({party: replace(each, to="party1") for party, each in asked.items()}, GramShares)


def by_two_directions_in_a_step(server: HostileServer) -> None:
    """A direction, and another of the same number."""
    asked = opened(server, AskStepPart)
    server.told_by_each(asked, StepPart)
    other = sendable_floats([0.0, 1.0, 0.0])
    server.told("party1", replace(asked["party1"], direction=other), StepPart)


def by_a_long_direction(server: HostileServer) -> None:
    """Numbers that would wrap around."""
    asked = opened(server, AskStepPart)
    server.told("party1", replace(asked["party1"], direction=sendable_floats([3.0, 0.0, 0.0])), StepPart)


def by_a_changed_part(server: HostileServer) -> None:
    """Something added to what the label party is shown of one row: the gradient would change by that row."""
    asked = opened(server, AskStepColumn)
    boxes = asked["party3"].boxes
    changed = bytearray(boxes[0])
    changed[8 * 3] ^= 1
    server.told("party3", replace(asked["party3"], boxes=(bytes(changed), *boxes[1:])), StepColumn)


def by_an_old_part(server: HostileServer) -> None:
    """Parts of one party in the place of another's."""
    asked = opened(server, AskStepColumn)
    first, second = asked["party3"].boxes
    server.told("party3", replace(asked["party3"], boxes=(second, first)), StepColumn)


def by_a_direction_for_the_label_party(server: HostileServer) -> None:
    """The label party's own columns, for nobody."""
    opened(server, AskStepColumn)
    server.told("party3", AskStepPart(0, sendable_floats([1.0, 0.0, 0.0])), StepPart)


@pytest.mark.parametrize(
    ("attack", "why"),
    [
        (by_more_steps, "the job sheet says 6 where this AskStepShares has steps = 7"),
        (by_another_label_party, "the job sheet says party3"),
        (by_two_directions_in_a_step, "step 0 where 1 of 6 were done"),
        (by_a_long_direction, "a direction of more than length 1"),
        (by_a_changed_part, "that was changed on the way"),
        (by_an_old_part, "that was changed on the way, or that another party encrypted"),
        (by_a_direction_for_the_label_party, "AskStepColumn, AskPairKey, AskPairAgreement would be next"),
    ],
)
def test_steps_are_those_of_the_sheet_and_parts_those_that_were_sent(
    tmp_path: Path, attack: Callable[[HostileServer], None], why: str
) -> None:
    with hostile_server(tmp_path, made_parties(), {"never": ["features", "labels", "scores"]}) as server:
        turned_away(lambda: attack(server), why)
        assert server.disclosed() <= {Reveals.MOMENTS, Reveals.TOTALS, Reveals.LEVELS, Reveals.PREDICTIONS}


def with_directions(monkeypatch: pytest.MonkeyPatch, chosen: list[Floats]) -> list[Floats]:
    """Let the server choose directions; keep the gradients that it is told."""
    left, gradients, usual = list(chosen), [], honest._gradient

    def told(*asked: Any) -> Floats:
        gradients.append(usual(*asked))
        return gradients[-1]

    monkeypatch.setattr(honest, "new_direction", lambda *_: left.pop(0) if left else None)
    monkeypatch.setattr(honest, "_gradient", told)
    monkeypatch.setattr(honest, "ENOUGH", 0.0)
    return gradients


def unit(column: int) -> Floats:
    return np.asarray(np.eye(9)[column])


@pytest.mark.parametrize("level", ["open", "usual"])
def test_a_row_that_stands_out_is_not_told_by_gradients(monkeypatch: pytest.MonkeyPatch, level: Any) -> None:
    """A direction in which one row stands out: chances change in this row, and nearly only there.

    So the change of the gradient is the row, up to a factor that the column itself tells. The label party sees that,
    and tells no gradient. At the level open there is no such rule, and the row is read.
    """
    features = X.copy()
    features[OUTLIER, 0] = 1000.0
    parties = made_parties(features)
    for party in parties:
        party.policy = cn.Policy(level=level, known_only=False)
    gradients = with_directions(monkeypatch, [unit(3), unit(0)])
    rows = np.union1d([OUTLIER], np.arange(0, N, 20))
    coreset = cn.Coreset(rows, np.full(len(rows), N / len(rows)), N, float(N))
    why = "after 2 steps: another would " + ("still lower" if level == "open" else "tell too much of a single row")
    with pytest.warns(cn.ConvergenceWarning, match=why):
        cn.Federation(parties).fit(cn.Classification(), coreset=coreset, solver=cn.SecureGram(steps=2))
    if level == "usual":
        assert len(gradients) == 1
        return
    change = gradients[1] - gradients[0]
    found = 1000.0 * change[4:7] / change[0]  # the column's mean and variance tell how far the row stands out
    assert np.abs(found - features[OUTLIER, 4:7]).max() < 0.3, "of columns with standard deviation 1"


def test_a_label_party_that_joins_forces_reads_fewer_columns_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Directions that are columns: the label party is shown these, of the coreset's rows. Six of seven, and no more."""
    shown: list[Floats] = []
    usual = label_side._solved

    def listening(kept: Any, *asked: Any) -> Any:
        shown[:] = kept.shown
        return usual(kept, *asked)

    monkeypatch.setattr(label_side, "_solved", listening)
    with_directions(monkeypatch, [unit(column) for column in range(7)])
    with pytest.warns(cn.ConvergenceWarning, match="after 6 steps"):
        run = cn.Federation(made_parties()).fit(TASK, sampler=SAMPLER, solver=cn.SecureGram(steps=30), seed=1)
    rows = X[run.coreset.rows]
    assert len(shown) == 6
    np.testing.assert_allclose(np.stack(shown, axis=1), (rows - rows.mean(axis=0))[:, :6], atol=1e-9)


def test_strict_owners_count_directions_for_all_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the columns, as for models that are applied under masks: of 3 and 4 columns, one direction ever."""
    parties = made_parties()
    for party in parties:
        party.policy = cn.Policy(level="strict")
    federation = cn.Federation(parties)
    fits: list[Any] = []
    for column in (0, 1):
        with_directions(monkeypatch, [unit(column)])
        if fits:
            with pytest.raises(cn.PolicyRefusedError, match="applies 1 models in all"):
                federation.fit(TASK, coreset=fits[0].coreset, solver=cn.SecureGram(steps=1), seed=1)
        else:
            with pytest.warns(cn.ConvergenceWarning, match="after 1 steps"):
                fits.append(federation.fit(TASK, sampler=SAMPLER, solver=cn.SecureGram(steps=1), seed=1))
