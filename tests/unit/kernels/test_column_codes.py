from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.errors import InputError
from colonnade.kernels.column_codes import Form, common_step, decode_columns, encode_columns
from colonnade.kernels.value_bits import value_bits

RNG = np.random.default_rng(0)
N = 2000
COLUMNS = {
    Form.CONSTANT: np.full(N, 3.25),
    Form.BITS: RNG.integers(0, 2, N) * 5.5 - 1,
    Form.PLACES: np.where(RNG.random(N) < 0.01, 1.0, 0.0),
    Form.SPARSE: np.where(RNG.random(N) < 0.05, RNG.normal(size=N), 2.0),
    Form.DENSE: RNG.normal(size=N) + 100,
}


def there_and_back(values: Any, step: float = 0.1, seed: int = 1) -> tuple[Any, bytes]:
    levels, code = encode_columns(values, values.mean(axis=0), step, np.random.default_rng(seed))
    return decode_columns(levels, code, values.shape, step, np.random.default_rng(seed)), code


def test_each_column_takes_its_form() -> None:
    values = np.column_stack(list(COLUMNS.values()))
    restored, code = there_and_back(values)
    assert tuple(code[: len(COLUMNS)]) == tuple(COLUMNS)
    np.testing.assert_array_equal(restored[:, :3], values[:, :3])
    assert np.abs(restored - values).max() <= 0.0501


@pytest.mark.parametrize(
    ("form", "n_bytes"), [(Form.CONSTANT, 2), (Form.BITS, 253), (Form.PLACES, 30), (Form.SPARSE, 170)]
)
def test_their_size(form: Form, n_bytes: int) -> None:
    assert len(there_and_back(COLUMNS[form][:, np.newaxis])[1]) <= n_bytes


@settings(max_examples=60)
@given(st.integers(1, 30), st.integers(0, 5), st.integers(0, 999))
def test_any_columns_come_back(n_rows: int, n_columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, rng.integers(1, 6, size=n_columns), size=(n_rows, n_columns)).astype(float)
    assert np.abs(there_and_back(values)[0] - values).max(initial=0.0) <= 0.0501


def test_codes_are_right_on_average() -> None:
    """Two z-tests at 4.5 sigma: a false alarm in 1 of 70,000 runs, were the seed not fixed."""
    for form in (Form.SPARSE, Form.DENSE):
        values = np.tile(COLUMNS[form][:, np.newaxis], (1, 20))
        errors = (there_and_back(values, step=1.0)[0] - values)[values != 2.0]
        assert abs(errors.mean()) < 4.5 / np.sqrt(12 * errors.size)


@given(st.binary(max_size=60), st.integers(0, 4))
def test_any_bytes_are_columns_or_an_error(code: bytes, n_levels: int) -> None:
    try:
        values = decode_columns(np.arange(float(n_levels)), code, (9, 2), 0.5, np.random.default_rng(0))
    except ValueError:
        return
    assert values.shape == (9, 2)


@given(st.data())
def test_truncated_columns_are_an_error(data: st.DataObject) -> None:
    values = np.column_stack(list(COLUMNS.values()))[:200]
    levels, code = encode_columns(values, np.zeros(5), 0.5, np.random.default_rng(0))
    cut = data.draw(st.integers(0, len(code) - 1))
    with pytest.raises(ValueError, match=r"byte|number|level|rows|code|place"):
        decode_columns(levels, code[:cut], values.shape, 0.5, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"level"):
        decode_columns(levels[1:], code, values.shape, 0.5, np.random.default_rng(0))


def test_one_step_for_all_columns() -> None:
    assert common_step(np.array([3.0, 4.0]), 0.5) == pytest.approx(0.5 * np.sqrt(12.5))
    assert common_step(np.array([]), 0.5) == 0.5
    with pytest.raises(InputError, match="cannot be rounded"):
        common_step(np.array([0.0]), 0.5)


@pytest.mark.parametrize("step", [0.1, 0.5, 1.0, 2.0])
def test_bits_are_predicted(step: float) -> None:
    values = np.random.default_rng(0).normal(size=(20_000, 1))
    _, code = encode_columns(values, np.zeros(1), step, np.random.default_rng(1))
    assert 8 * len(code) / 20_000 == pytest.approx(value_bits(step), rel=0.02)
