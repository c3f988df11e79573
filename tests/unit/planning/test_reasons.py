"""A plan says why: by the numbers it was chosen by, and by what was left out."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.planning.choosing import MOST_HEAVY
from colonnade.planning.records import percent
from colonnade.protocol import windows
from command import run as command
from random_parties import make_parties

JOB = Path(__file__).parents[3] / "examples" / "bank" / "job.toml"


@pytest.fixture(scope="module")
def federation() -> cn.Federation:
    return cn.Federation(make_parties(4000))


def lost(why: str) -> list[float]:
    """Read what each way would lose, the chosen one first."""
    return [float(number) for number in re.findall(r"lose ([\d.]+) %", why)]


def test_for_a_budget_it_names_what_others_would_lose(federation: cn.Federation) -> None:
    plan = federation.plan(cn.Regression(), budget_bytes=15_000)
    amounts = lost(plan.why)
    assert f"that is expected to lose {percent(plan.chosen.excess.mean)}, where" in plan.why
    assert len(amounts) >= 2
    assert min(amounts) == amounts[0]
    assert plan.why.count(". ") == 0, "one sentence"
    assert plan.why in str(plan)


def test_for_a_target_it_names_what_others_would_send(federation: cn.Federation) -> None:
    plan = federation.plan(cn.Regression(), target_excess=0.01)
    sent = [int(number.replace(",", "")) for number in re.findall(r"takes? ([\d,]+\d)", plan.why)]
    assert plan.why.startswith("Rows are drawn")
    assert "for 1.0 % that takes" in plan.why
    assert sent[0] == pytest.approx(plan.chosen.most_bytes, abs=1)
    assert min(sent) == sent[0]
    assert len(sent) >= 2


def test_all_rows_that_fit(federation: cn.Federation) -> None:
    plan = federation.plan(cn.KMeans(n_clusters=3), budget_bytes=10**6)
    assert plan.why == "All rows are sent, as they are: they fit, and nothing is lost."


def test_more_rows_than_fit_a_message_are_not_proposed(
    federation: cn.Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan once proposed all rows, rounded, which its own run then refused."""
    widest = max(card.n_features for card in federation.roster.cards) + 1
    monkeypatch.setattr(windows, "MAX_NUMBERS", 2_000 * widest)
    plan = federation.plan(cn.Regression(), budget_bytes=10**6)
    assert not isinstance(plan.sampler, cn.AllRows)
    assert plan.sampler.size <= 2_000
    assert "all rows are more than the 2,000 that fit one message" in plan.why
    assert federation.fit(cn.Regression(), plan=plan).sampler == plan.sampler


def test_few_rounds(federation: cn.Federation) -> None:
    plan = federation.plan(cn.Regression(), budget_bytes=9_000, max_rounds=4)
    assert "draws by scores take more rounds than are allowed" in plan.why


def test_rows_that_matter_too_much() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    X[:10, 2] *= 300
    federation = cn.Federation(cn.split_columns(X, X @ np.ones(6) + rng.normal(size=20_000), [3, 3]))
    plan = federation.plan(cn.Regression(), budget_bytes=12_000)
    assert plan.why.startswith("Rows are drawn by scores: ")
    found = re.search(r"even draws could miss rows that matter too much \(weight times leverage ([\d.e+]+), ", plan.why)
    assert found is not None
    assert float(found[1]) > MOST_HEAVY


@pytest.mark.filterwarnings("ignore:The excess of this plan is not known")
def test_amounts_that_are_not_known_are_not_said() -> None:
    """Rows are drawn evenly, and few have most of a column's variance."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 4))
    X[:10, 1] *= 1e4
    first, second = cn.split_columns(X, X @ np.ones(4) + rng.normal(size=20_000), [2, 2])
    first.policy = cn.Policy(level="open", never=["scores"])
    plan = cn.Federation([first, second]).plan(cn.Regression(), budget_bytes=15_000)
    assert plan.excess is None
    assert not lost(plan.why)
    assert "the policy of 'party1' allows no draws by scores" in plan.why


def test_it_stays_with_the_run_and_in_files(federation: cn.Federation, tmp_path: Path) -> None:
    plan = federation.plan(cn.Regression(), budget_bytes=12_000)
    saved = plan.save(tmp_path / "plan.json")
    assert cn.Plan.load(saved).why == plan.why
    run: Any = federation.fit(cn.Regression(), plan=plan)
    assert cn.Run.load(run.save(tmp_path / "run")).why == plan.why
    at_once: Any = federation.fit(cn.Regression(), budget_bytes=12_000)
    assert lost(at_once.why)
    plain: Any = federation.fit(cn.Regression(), sampler=cn.UniformSampling(100))
    assert plain.why is None
    content = json.loads(saved.read_bytes())
    saved.write_text(json.dumps({**content, "why": "Because."}))
    with pytest.raises(cn.InputError, match="was changed after it was written"):
        cn.Plan.load(saved)


def test_commands_show_it(tmp_path: Path) -> None:
    out = str(tmp_path / "plan.json")
    shown = command("plan", str(JOB), "--budget", "9000", "--out", out).stdout
    why = cn.Plan.load(out).why
    assert " ".join(why.split()) in " ".join(shown.split())
    assert json.loads(command("plan", str(JOB), "--budget", "9000", "--json").stdout)["why"] == why
    assert json.loads(command("fit", str(JOB), "--plan", out, "--json").stdout)["why"] == why
    at_once = command("fit", str(JOB), "--budget", "9000").stdout
    assert "expected to lose" in at_once or "All rows are sent" in at_once
