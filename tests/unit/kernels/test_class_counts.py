"""Chances of rows without number: sums are those of all rows at once, areas by bins within their own bound."""

import numpy as np
import pytest

from colonnade.kernels import per_row
from colonnade.kernels.arrays import Floats
from colonnade.kernels.class_counts import EXPONENTS, Compared, Part, bins_of
from colonnade.kernels.class_metrics import ClassMetrics, class_metrics
from colonnade.kernels.logits import probabilities
from colonnade.kernels.ranks import ROWS_AT_ONCE

N = 40_000
CASES = [(2, "spread"), (2, "rare"), (2, "few values"), (2, "near"), (3, "spread"), (3, "few values"), (9, "spread")]


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few rows many."""
    monkeypatch.setattr(per_row, "KEPT_ROWS", 30_000)


def made(n_classes: int, law: str, *, weighted: bool) -> Part:
    rng = np.random.default_rng(n_classes)
    logits = 2 * rng.normal(size=(N, 1 if n_classes == 2 else n_classes))
    logits = {"spread": logits, "rare": logits / 2 - 5, "few values": np.round(logits), "near": logits * 1e-3}[law]
    if n_classes == 2:
        logits = logits[:, 0]
        codes = rng.random(N) < probabilities(logits)
    else:
        codes = (rng.random((N, 1)) > probabilities(logits).cumsum(axis=1)).sum(axis=1)
    return Part(logits, codes.astype(np.int8), rng.integers(0, 3, N).astype(np.float64) if weighted else None)


def cut(part: Part, length: int) -> list[Part]:
    ends = [slice(start, start + length) for start in range(0, N, length)]
    return [Part(part[0][some], part[1][some], None if part[2] is None else part[2][some]) for some in ends]


def compared(parts: list[Part], n_classes: int) -> ClassMetrics:
    found = Compared(n_classes)
    for part in parts:
        found = found.add(part)
    return found.metrics(10)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_classes", "law"), CASES)
def test_many_rows_are_compared_as_few_are(n_classes: int, law: str, weighted: bool) -> None:
    part = made(n_classes, law, weighted=weighted)
    weights = np.ones(N) if part.weights is None else part.weights
    found = compared(cut(part, 2 * ROWS_AT_ONCE), n_classes)
    exact = class_metrics(part.logits, part.codes, weights, n_classes, 10)
    for name in ("cost", "deviation", "brier"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), rel=1e-11)
    np.testing.assert_allclose(found.confusion, exact.confusion, rtol=1e-12)
    areas, due = found.areas, exact.areas
    assert np.abs(areas[:, 0] - due[:, 0]).max() < 2e-4
    # What bins leave open is part of how much an area varies.
    single = slice(None) if n_classes == 2 else slice(-1)
    # Equal chances of three classes differ by rounding, which orders them for nothing.
    off = np.abs(areas[single, 0] - due[single, 0]) * (law != "few values")
    assert (np.sqrt(areas[single, 1]) >= np.sqrt(due[single, 1]) * (1 - 1e-3) + off / 2).all()
    assert (np.sqrt(areas[single, 1]) < np.sqrt(due[single, 1]) * 1.05).all()
    assert areas[-1, 1] >= due[-1, 1] * (1 - 1e-3), "a mean of areas varies no more than is told"
    np.testing.assert_allclose(found.calibration[:, 0].sum(), weights.sum())
    if law != "few values":
        np.testing.assert_allclose(found.calibration, exact.calibration, rtol=0.02, atol=2e-4)
    elif n_classes == 2:
        np.testing.assert_allclose(found.calibration, exact.calibration, rtol=1e-11)
        np.testing.assert_allclose(areas, due, rtol=1e-9, err_msg="equal logits are no error of bins")


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_how_many_blocks_come_together_changes_no_bit(n_classes: int, weighted: bool) -> None:
    part = made(n_classes, "spread", weighted=weighted)
    found = [compared(cut(part, length * 2 * ROWS_AT_ONCE), n_classes) for length in (1, 2, 3)]
    for other in found[1:]:
        for name in ("cost", "deviation", "brier", "confusion", "areas", "calibration"):
            np.testing.assert_array_equal(getattr(found[0], name), getattr(other, name))


def test_few_rows_are_compared_exactly_whatever_their_parts() -> None:
    part = made(2, "spread", weighted=True)
    found = compared(cut(part, 999), 2)
    exact = class_metrics(part.logits, part.codes, np.ones(N) if part.weights is None else part.weights, 2, 10)
    np.testing.assert_array_equal(found.areas, exact.areas)


@pytest.mark.usefixtures("many")
def test_a_comparison_that_goes_on_leaves_what_it_was() -> None:
    """A party that refuses a window has what it had before."""
    parts = cut(made(2, "spread", weighted=False), 2 * ROWS_AT_ONCE)
    found = Compared(2)
    for part in parts[:-1]:
        found = found.add(part)
    before, _ = found.metrics(10), found.add(parts[-1]).metrics(10)
    np.testing.assert_array_equal(found.metrics(10).areas, before.areas)
    assert "not shown" in repr(found)


@pytest.mark.parametrize("n_bits", [4, 12])
def test_bins_ascend_with_logits_and_tell_small_ones_apart(n_bits: int) -> None:
    sizes: Floats = np.sort(np.concatenate([2.0 ** np.linspace(-20, 20, 5001), [0.0, 1e-300, 1e80, np.inf]]))
    logits = np.concatenate([-sizes[::-1], sizes])
    with np.errstate(all="raise"):
        bins = bins_of(logits, n_bits)
    assert (np.diff(bins) >= 0).all()
    assert (bins[0], bins[-1]) == (0, (4 * EXPONENTS << n_bits) - 1)
    within = (np.abs(logits) > 2.0**-15) & (np.abs(logits) < 2.0**15)
    for each in np.unique(bins[within]):
        same = np.abs(logits[within][bins[within] == each])
        assert same.max() <= same.min() * (1 + 2.0**-n_bits) * (1 + 1e-6)


@pytest.mark.usefixtures("many")
def test_an_area_without_both_kinds_of_rows_is_a_half() -> None:
    part = Part(np.linspace(-1, 1, N), np.ones(N, np.int8), None)
    assert compared([part], 2).areas.tolist() == [[0.5, 0.0]]


@pytest.mark.usefixtures("many")
def test_what_a_bin_leaves_open_is_part_of_how_much_an_area_varies() -> None:
    """All rows are in one bin: the area of rows in the right order is 1, and nothing is known of it."""
    ordered, same = 1 + np.linspace(0, 2.0**-13, N), np.ones(N)
    codes = (np.arange(N) >= N / 2).astype(np.int8)
    assert compared([Part(ordered, codes, None)], 2).areas.tolist() == [[0.5, 0.25]]
    assert compared([Part(same, codes, None)], 2).areas.tolist() == [[0.5, 0.0]]


def test_no_area_varies_by_more_than_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server believes no party that says so."""
    monkeypatch.setattr(per_row, "KEPT_ROWS", 0)
    part = Part(np.array([1 + 2.0**-15, 1 + 2.0**-14, -2.0, -3.0]), np.array([0, 1, 0, 1], np.int8), None)
    assert compared([part], 2).areas[0, 1] == 0.25


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_line_of_many_rows_is_of_as_many_as_the_owner_asks_for(n_classes: int) -> None:
    found = Compared(n_classes).add(made(n_classes, "few values", weighted=False))
    sizes = found.metrics(1).calibration[:, 0]
    lines = found.metrics(int(sizes.min()) + 1).calibration[:, 0]
    assert lines.min() > sizes.min()
    assert 1 < len(lines) < len(sizes)
    assert lines.sum() == N
