"""What a solver, an audit or a diagnosis tells beside rows that were drawn: sums over all rows, and models applied.

Means and mixing matrices of rounded rows, and means of audited predictions, were compared with no other sum. An audit
applied any directions, a diagnosis any centres, to rows and pairs by seeds of the server's choice.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import colonnade as cn
from colonnade.diagnostics.audited_distances import AskAuditedDistances, AuditedDistances
from colonnade.diagnostics.audited_predictions import AskAuditedPredictions, AuditedPredictions, audit_dithers
from colonnade.diagnostics.certifying import audit_sampler
from colonnade.diagnostics.moved_distances import AskMovedDistances, MovedDistances
from colonnade.diagnostics.over_parties import DiagnosisSeeds
from colonnade.diagnostics.pair_distances import AskPairDistances, PairDistances
from colonnade.diagnostics.row_distances import AskRowDistances, RowDistances
from colonnade.kernels.arrays import Floats
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.planning.pilot import play_pilot
from colonnade.protocol.viewing import agree_on_view
from colonnade.solvers.scaled_columns import ScaledColumns
from colonnade.solvers.whitened_columns import WhitenedColumns
from colonnade.tasks.jobs import learn, shared_seed
from hostile.test_models import TARGET, WIDTH, of_column, tell
from hostile_trial import N_ROWS, HostileServer, hostile_server, made_parties, one_hot, turned_away

M = TypeVar("M", bound=Message)
# 50 rows, and the same with one more: 51 times a mean of these less 50 times a mean of those is a row.
SPLITS = cn.HoldOut(0.5, 0), cn.HoldOut(0.49, 0)
COMPACT, FEW_ROWS = cn.CompactCentral(), cn.UniformSampling(5)
REGRESSION, CLUSTERS, TWO = cn.Regression(), cn.KMeans(n_clusters=1, n_starts=1), cn.KMeans(n_clusters=2)
AUDITED, PAIRS, NONE = 60, 50, np.empty((0, WIDTH))


def told(server: HostileServer, kind: type[M]) -> list[M]:
    """List what the target told."""
    return [reply for party, reply in server.received if party == TARGET and isinstance(reply, kind)]


def by_whitening(server: HostileServer) -> None:
    """Few rows, rounded, come with the means of all rows that count."""
    for split in SPLITS:
        script = learn(REGRESSION, FEW_ROWS, COMPACT, split, server.roster, 0)
        server.honestly(script, "fit", task=REGRESSION, sampler=FEW_ROWS, solver=COMPACT, split=split, seed=0)


def by_levels(server: HostileServer) -> None:
    """Columns of clusterings come with their means, too."""
    for split in SPLITS:
        script = learn(CLUSTERS, FEW_ROWS, COMPACT, split, server.roster, 0)
        server.honestly(script, "fit", task=CLUSTERS, sampler=FEW_ROWS, solver=COMPACT, split=split, seed=0)


def by_pilots(server: HostileServer) -> None:
    """So do the rows of a plan's pilot."""
    for split in SPLITS:
        script = play_pilot(REGRESSION, server.roster, split, 20, None, 0)
        server.honestly(script, "plan", task=REGRESSION, pilot=20, split=split, seed=0)


@pytest.mark.parametrize(
    ("attack", "kind"),
    [(by_whitening, WhitenedColumns), (by_levels, ScaledColumns), (by_pilots, WhitenedColumns)],
)
def test_means_beside_rounded_rows_of_two_runs_do_not_differ_by_a_row(
    tmp_path: Path, attack: Callable[[HostileServer], None], kind: type[Message]
) -> None:
    with hostile_server(tmp_path, made_parties()) as server:
        turned_away(lambda: attack(server), "1 rows apart from a sum that it has told before")
        assert len(told(server, kind)) <= 1


def test_means_beside_rounded_rows_are_counted(tmp_path: Path) -> None:
    """Of 300 values, half of which are told as numbers, each split tells 9."""
    seeds: list[int] = []

    def attack(server: HostileServer) -> None:
        for seed in range(100):
            split = cn.HoldOut(0.5, seed)
            script = learn(REGRESSION, FEW_ROWS, COMPACT, split, server.roster, 0)
            server.honestly(script, "fit", task=REGRESSION, sampler=FEW_ROWS, solver=COMPACT, split=split, seed=0)
            seeds.append(seed)

    with hostile_server(tmp_path, made_parties(), {"level": "open"}, policies={"party1": {}}) as server:
        turned_away(lambda: attack(server), "for each of its values")
    assert len(seeds) == 150 // 9


def drawn_for_audit(
    server: HostileServer, model: cn.LinearModel | cn.KMeansModel | None, directions: int = 1, **options: Any
) -> None:
    """Open an audit, and draw its rows honestly."""
    task, split = (CLUSTERS if isinstance(model, cn.KMeansModel) else REGRESSION), options.get("split")
    said = {"directions": directions}
    server.new_run("certify", task=task, model=model, rows=AUDITED, seed=0, options=said, **options)
    view = server.play(agree_on_view(server.roster, split, "train", "own"))
    sampler, rng = audit_sampler(AUDITED, secure=False), np.random.default_rng([0, 3])
    server.play(sampler.sample(server.roster, task.score_rule(), rng, view.row_weights))


def audited(server: HostileServer, coef: Floats, hidden: Floats, seed: int | None = None) -> AuditedPredictions:
    dither = audit_dithers(server.roster, shared_seed(0))[TARGET] if seed is None else seed
    request = AskAuditedPredictions(sendable_floats(coef), sendable_floats(hidden), dither)
    return server.told(TARGET, request, AuditedPredictions)


def test_means_of_two_audits_do_not_differ_by_a_row(tmp_path: Path) -> None:
    """The mean of a model of one coefficient is that of a column."""
    with hostile_server(tmp_path, made_parties()) as server:
        model = of_column(server, 0)
        tell(server, model)

        def attack() -> None:
            for split in SPLITS:
                drawn_for_audit(server, model, split=split)
                audited(server, one_hot(0, WIDTH), NONE)

        turned_away(attack, "1 rows apart from a sum that it has told before")
        assert len(told(server, AuditedPredictions)) == 1


def test_an_audit_applies_the_model_on_its_sheet_and_that_one_was_told(tmp_path: Path) -> None:
    """Columns were directions of one audit: 16 bits of each value, of a model that nobody knew."""
    with hostile_server(tmp_path, made_parties()) as server:
        model, centers = of_column(server, 0), cn.KMeansModel(np.ones((1, 10)), server.roster.feature_names)
        turned_away(lambda: drawn_for_audit(server, None), "a job sheet lacks `model`")
        turned_away(lambda: drawn_for_audit(server, model), "applies only models that it helped to learn")
        tell(server, model)
        tell(server, centers)
        turned_away(lambda: drawn_for_audit(server, model, 12), "along 12 directions; there are 1 to 11")
        drawn_for_audit(server, model)
        told_part = one_hot(0, WIDTH)
        for coef, hidden, seed, why in (
            (one_hot(1, WIDTH), NONE, None, "says what has the digest .* has part = "),
            (told_part, np.eye(WIDTH), None, "says 0 to 0 rows where this AskAuditedPredictions has hidden = "),
            (told_part, NONE, 7, "where this AskAuditedPredictions has seed = 7"),
        ):
            turned_away(lambda c=coef, h=hidden, s=seed: audited(server, c, h, s), why)  # type: ignore[misc]
        drawn_for_audit(server, centers)
        for places, why in ((np.zeros((1, WIDTH)), "has part = "), (np.eye(WIDTH), "says 0 to 1 rows")):
            request = AskAuditedDistances(sendable_floats(places), None)
            turned_away(lambda r=request: server.told(TARGET, r, AuditedDistances), why)  # type: ignore[misc]
        assert not server.disclosed() & {Reveals.FEATURES, Reveals.LABELS, Reveals.PREDICTIONS}


def test_directions_that_rounding_is_said_to_have_hidden_count_as_rows(tmp_path: Path) -> None:
    """They are the server's choice: with as many as columns it has the rows, so they count as these."""
    with hostile_server(tmp_path, made_parties(), {"rows_a_day": 3 * AUDITED}) as server:
        model = of_column(server, 0)
        tell(server, model)

        def attack() -> None:
            for _ in range(2):
                drawn_for_audit(server, model, 1 + WIDTH)
                audited(server, one_hot(0, WIDTH), np.eye(WIDTH))

        why = turned_away(attack, f"limits replies to {3 * AUDITED} rows a day")
        assert why.request.kind == "AskAuditedPredictions"
        (only,) = told(server, AuditedPredictions)
        assert f"{3 * only.size} were sent today" in str(why)


def looked_at(server: HostileServer, model: cn.KMeansModel | None) -> None:
    """Open a diagnosis, and draw the rows that are looked at honestly."""
    server.new_run("diagnose", task=TWO, model=model, rows=N_ROWS, seed=0, options={"pairs": PAIRS})
    sampler = cn.ImportanceSampling(N_ROWS, uniform_share=0.5)
    server.play(sampler.sample(server.roster, TWO.score_rule(), np.random.default_rng([0, 2])))


def test_a_diagnosis_measures_pairs_rows_and_centres_that_its_sheet_says(tmp_path: Path) -> None:
    """Distances to 0 and to each unit vector were columns; pairs and rows of the server's choice tell of those."""
    seeds = DiagnosisSeeds.of(shared_seed(0))
    with hostile_server(tmp_path, made_parties()) as server:
        model = cn.KMeansModel(np.eye(10)[3:5], server.roster.feature_names)
        turned_away(lambda: looked_at(server, model), "applies only models that it helped to learn")
        tell(server, model)
        looked_at(server, model)
        own = sendable_floats(np.eye(WIDTH)[:2])
        requests: list[tuple[Message, Message, str]] = [
            (AskPairDistances(PAIRS, seeds.pairs), AskPairDistances(PAIRS, 7), "has seed = 7"),
            (AskRowDistances(10, seeds.pool), AskRowDistances(10, 7), "has seed = 7"),
            (
                AskMovedDistances(own, None, seeds.moves),
                AskMovedDistances(sendable_floats(np.eye(WIDTH)[2:]), None, seeds.moves),
                "has part = ",
            ),
        ]
        for honest, other, why in requests:
            turned_away(lambda r=other: server.told(TARGET, r, Message), why)  # type: ignore[misc]
            server.told(TARGET, honest, Message)
        more = AskMovedDistances(sendable_floats(np.eye(WIDTH)), None, seeds.moves)
        turned_away(lambda: server.told(TARGET, more, Message), "nothing more would be next in this job")


def test_a_diagnosis_without_a_model_applies_none(tmp_path: Path) -> None:
    seeds = DiagnosisSeeds.of(shared_seed(0))
    with hostile_server(tmp_path, made_parties()) as server:
        looked_at(server, None)
        server.told(TARGET, AskPairDistances(PAIRS, seeds.pairs), PairDistances)
        server.told(TARGET, AskRowDistances(10, seeds.pool), RowDistances)
        request = AskMovedDistances(sendable_floats(np.eye(WIDTH)[:2]), None, seeds.moves)
        turned_away(lambda: server.told(TARGET, request, MovedDistances), "nothing more would be next in this job")


def usual() -> cn.Federation:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = X @ np.ones(6) + rng.normal(size=400)
    policy = cn.Policy(level="usual")
    parties = [cn.Party(f"party{j}", X[:, 2 * j - 2 : 2 * j], policy=policy) for j in (1, 2)]
    return cn.Federation([*parties, cn.Party("party3", X[:, 4:], label=y, policy=policy)])


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")
@pytest.mark.parametrize("split", [None, cn.HoldOut(0.2)])
def test_honest_jobs_on_the_same_rows_go_on(split: cn.HoldOut | None) -> None:
    federation = usual()
    for task in (cn.Regression(), cn.Regression(standardize=True), cn.KMeans(n_clusters=3)):
        drawn = cn.ImportanceSampling(200)
        federation.plan(task, budget_bytes=10**6, split=split)
        for solver in (cn.CompactCentral(), cn.Central()):
            run = federation.fit(task, sampler=drawn, solver=solver, split=split)
            for _ in range(2):
                federation.certify(run, rows=100)
        federation.fit(task, budget_bytes=10**6, split=split)
    federation.fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.SecureGram(), split=split)


def test_shares_of_two_audits_of_classes_do_not_differ_by_a_row() -> None:
    """Of 199 rows and of 200: the share of a class among these, times their number, would tell the class of one."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    late = (X @ np.ones(6) + rng.logistic(size=400) > 0).astype(float)
    policy = cn.Policy(level="usual")
    parties = [cn.Party(f"party{j}", X[:, 2 * j - 2 : 2 * j], policy=policy) for j in (1, 2)]
    federation = cn.Federation([*parties, cn.Party("party3", X[:, 4:], label=late, policy=policy)])
    task, sampler = cn.Classification(l2=0.01), cn.ImportanceSampling(120)
    runs = [federation.fit(task, sampler=sampler, split=cn.HoldOut(share, 0)) for share in (0.5, 0.5 + 1 / 400)]
    federation.certify(runs[0], rows=90)
    with pytest.raises(cn.PolicyRefusedError, match="1 rows apart from a sum that it has told before"):
        federation.certify(runs[1], rows=90)
