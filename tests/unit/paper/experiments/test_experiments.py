"""The experiments are the paper's."""

import pytest

import colonnade as cn
from colonnade.paper.experiments import EXPERIMENTS
from colonnade.paper.runner import Settings, plan
from colonnade.paper.variants import AS_RUN, AS_WRITTEN


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_keeps_the_first_and_the_last_size(name: str) -> None:
    quick = Settings(AS_RUN, quick=True)
    for part in EXPERIMENTS[name].parts:
        steps = [step for step in plan(EXPERIMENTS[name], quick) if step.part is part]
        sizes = {step.draw.size for step in steps if not step.method.is_slow and step.draw.prefix}
        assert sizes == {part.sizes[0], part.sizes[-1]}
        assert len(steps) < 60


def test_the_experiments_are_the_paper_s() -> None:
    assert list(EXPERIMENTS) == [
        "table1-regression",
        "table1-clustering",
        "parties",
        "regularisers",
        "centres",
        "kc-house",
    ]
    whole = Settings(AS_WRITTEN)
    assert len(plan(EXPERIMENTS["table1-regression"], whole)) == 2 * (1 + 2 * 6 * 20)
    assert all(part.widths == (18,) * 5 for part in EXPERIMENTS["parties"].parts)
    penalties = [
        part.learn.penalties() for part in EXPERIMENTS["regularisers"].parts if isinstance(part.learn, cn.Regression)
    ]
    assert penalties == [(0.0, 0.0), (0.0, 2.0), (1.0, 2.0)]


def test_saga_on_raw_columns_is_not_tried_on_all_rows() -> None:
    names = {step.draw.prefix for step in plan(EXPERIMENTS["kc-house"], Settings(AS_RUN)) if step.method.name == "SAGA"}
    assert names == {"C-", "U-"}
