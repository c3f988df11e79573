"""What each level lets run: strict only SecureGram with secure sums, usual and open every kind of job."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import SOLVERS
from colonnade.errors import PolicyRefusedError
from colonnade.messages import Message
from colonnade.node.files import PolicyFile
from colonnade.protocol.policy import LEVELS, Level, amounts
from colonnade.protocol.session import PartySession

REGRESSION, KMEANS = cn.Regression(l2=0.1), cn.KMeans(n_clusters=3)
SECURE = cn.ImportanceSampling(200, scores="secure")
FITS: dict[str, tuple[Any, Any]] = {
    "central": (REGRESSION, cn.Central()),
    "compact": (REGRESSION, cn.CompactCentral()),
    "saga": (REGRESSION, cn.Saga()),
    "gram": (REGRESSION, cn.SecureGram()),
    "distdim": (KMEANS, cn.DistDim()),
    "lloyd": (KMEANS, cn.SecureLloyd()),
}
USES: dict[str, Callable[[cn.Federation, Any], object]] = {
    "predict": lambda federation, run: federation.predict(run.model),
    "evaluate": lambda federation, run: federation.evaluate(run.model),
    "evaluate by a party": lambda federation, run: federation.evaluate(run.model, by="bank"),
    "deliver": lambda federation, run: federation.deliver(run.model, "bank"),
    "certify": lambda federation, run: federation.certify(run, rows=200),
    "diagnose": lambda federation, _: federation.diagnose(REGRESSION),
    "plan": lambda federation, _: federation.plan(REGRESSION, budget_bytes=50_000),
    "coreset": lambda federation, _: federation.coreset(REGRESSION, SECURE, seed=1),
    "again": lambda federation, run: federation.fit(REGRESSION, coreset=run.coreset, solver=cn.SecureGram()),
    "hold out": lambda federation, _: federation.fit(
        REGRESSION, sampler=SECURE, solver=cn.SecureGram(), split=cn.HoldOut(0.2), seed=2
    ),
    "committed draws": lambda federation, _: federation.fit(
        REGRESSION,
        sampler=cn.ImportanceSampling(200, scores="secure", draws="committed"),
        solver=cn.SecureGram(),
        seed=3,
    ),
    "plain scores": lambda federation, _: federation.coreset(REGRESSION, cn.ImportanceSampling(200), seed=4),
}
# What is refused by strict, and by which words.
REFUSED = {
    "predict": "never reveals features",
    "evaluate": "never reveals features",
    "certify": "never reveals features",
    "diagnose": "never reveals scores",
    "plan": "allows the solvers gram, not 'compact'",
    "plain scores": "never reveals scores",
}

N_ROWS = 2_000


def parties_of(level: Level) -> list[cn.Party]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 9))
    y = X @ rng.normal(size=9) + rng.normal(size=N_ROWS)
    policy = cn.Policy(level=level)
    return [
        cn.Party("bank", X[:, :3], label=y, policy=policy),
        cn.Party("telephone", X[:, 3:6], policy=policy),
        cn.Party("shop", X[:, 6:], policy=policy),
    ]


def test_every_solver_is_tried() -> None:
    assert set(FITS) == set(SOLVERS)


@pytest.mark.filterwarnings("ignore::colonnade.errors.DisclosureWarning")
@pytest.mark.parametrize("solver", FITS)
@pytest.mark.parametrize("level", LEVELS)
def test_which_solvers_a_level_lets_learn(level: Any, solver: str) -> None:
    federation, (task, how) = cn.Federation(parties_of(level)), FITS[solver]
    if level == "strict" and solver != "gram":
        with pytest.raises(PolicyRefusedError, match=f"did not answer OpenJob: .* the solvers gram, not '{solver}'"):
            federation.fit(task, sampler=SECURE, solver=how, seed=0)
        assert {record.kind for record in federation.sent} <= {"OpenJob", "JobAccepted", "Refused"}, "nothing was told"
    else:
        assert federation.fit(task, sampler=SECURE, solver=how, seed=0).model is not None


@pytest.mark.filterwarnings("ignore::colonnade.errors.DisclosureWarning")
@pytest.mark.parametrize("level", LEVELS)
def test_what_a_level_lets_be_done_with_a_model(level: Any) -> None:
    federation = cn.Federation(parties_of(level))
    run = federation.fit(REGRESSION, sampler=SECURE, solver=cn.SecureGram(), seed=0)
    for name, use in USES.items():
        if level == "strict" and name in REFUSED:
            with pytest.raises(PolicyRefusedError, match=f"did not answer OpenJob: .* {REFUSED[name]}"):
                use(federation, run)
        else:
            use(federation, run)


def test_strict_wants_three_parties() -> None:
    federation = cn.Federation(parties_of("strict")[:2])
    with pytest.raises(PolicyRefusedError, match="asks for 3 parties at least; this job has 2"):
        federation.fit(
            REGRESSION,
            sampler=cn.ImportanceSampling(200, scores="secure", allow_two_parties=True),
            solver=cn.SecureGram(allow_two_parties=True),
        )


def test_strict_applies_a_third_as_many_models_as_a_party_has_columns() -> None:
    federation = cn.Federation(parties_of("strict"))
    first, second = (
        federation.fit(cn.Regression(l2=l2), sampler=SECURE, solver=cn.SecureGram(), seed=0) for l2 in (0.1, 0.2)
    )
    federation.deliver(first.model, "bank")
    federation.evaluate(first.model, by="bank")
    with pytest.raises(PolicyRefusedError, match="applies 1 models in all"):
        federation.deliver(second.model, "bank")


@pytest.mark.filterwarnings("ignore::colonnade.errors.DisclosureWarning")
def test_an_ordinary_days_work_is_within_the_amounts_of_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds of jobs, one after another: between machines they would be counted against one day."""
    told: Counter[str] = Counter()
    answer = PartySession.answer

    def counted(session: PartySession, request: Message) -> Message:
        reply = answer(session, request)
        told.update(amounts(request, reply))
        return reply

    monkeypatch.setattr(PartySession, "answer", counted)
    federation = cn.Federation(parties_of("usual"))
    for task, solver in FITS.values():
        federation.fit(task, sampler=SECURE, solver=solver, seed=0)
    run = federation.fit(REGRESSION, sampler=SECURE, solver=cn.SecureGram(), seed=0)
    for use in USES.values():
        use(federation, run)
    a_day = PolicyFile(level="usual").a_day(N_ROWS)
    assert {name: count / 3 <= getattr(a_day, name) for name, count in told.items()} == dict.fromkeys(told, True), told
    assert told["rows"] / 3 > 10_000, "a tenth of the amount would refuse some of them"
