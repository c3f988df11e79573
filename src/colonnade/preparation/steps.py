"""What the steps of a fitted scikit-learn pipeline call to read columns, made so that a pipeline can be stored.

Each is made of texts, which it checks: a file of skops has nothing else of it, and may come from anybody.
"""

from bisect import bisect_left
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.options import learn_types
from colonnade.preparation.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, Scaled
from colonnade.preparation.levels import OTHER
from colonnade.preparation.preparation import MAX_JSON_BYTES
from colonnade.preparation.reading import BY_NUMBER, Cells, cells, moments, numbers, part_of, without_view

Measured = NumberColumn | DateColumn


class ColumnStep:
    """Does one thing with the values of a column.

    Parameters
    ----------
    does : {"values", "first", "levels", "shape"}
        Reads numbers or parts of dates; only the first of these; levels; or clips and takes the logarithm.
    learned : str
        What was learned of the column, as JSON.
    """

    def __init__(self, does: str, learned: str) -> None:
        self._does, self._learned = does, learned
        self._column = _column(does, learned)

    def __reduce__(self) -> tuple[type["ColumnStep"], tuple[str, str]]:
        return ColumnStep, (self._does, self._learned)

    def __setstate__(self, _state: object) -> None:
        raise InputError("A step is made of texts alone. Take the file of the pipeline as it was written.")

    def __repr__(self) -> str:
        # Without what was learned: levels do not belong in a log.
        return f"ColumnStep({self._does!r} of {self._column.column!r})"

    def __call__(self, rows: Any) -> npt.NDArray[Any]:
        """Do it with rows of a frame of this column, or, to shape them, of numbers."""
        work, name = STEPS[self._does][0], self._column.column
        if self._does == "shape":
            return np.asarray(work(self._column, rows))
        return np.concatenate([work(self._column, block) for block in cells(_table(rows, name), name)])


class GivenNames:
    """Names what a step gives.

    Parameters
    ----------
    *names : str
        One a column.
    """

    def __init__(self, *names: str) -> None:
        if not all(isinstance(name, str) for name in names):
            raise InputError("Names of columns are text. Take the file of the pipeline as it was written.")
        self._names = names

    def __reduce__(self) -> tuple[type["GivenNames"], tuple[str, ...]]:
        return GivenNames, self._names

    def __setstate__(self, _state: object) -> None:
        raise InputError("A step is made of texts alone. Take the file of the pipeline as it was written.")

    def __repr__(self) -> str:
        return f"GivenNames({', '.join(map(repr, self._names))})"

    def __call__(self, transformer: object, received: object) -> npt.NDArray[Any]:  # noqa: ARG002  # by scikit-learn
        """Give the names, whatever those before were."""
        return np.array(self._names, dtype=object)


def level_name(column: str, level: str) -> str:
    """Call the column of a level as its party does."""
    return f"{column}={level}"


def scalings(column: Measured) -> list[Scaled]:
    """List how each of a column's numbers enters."""
    return [column.scaling] if isinstance(column, NumberColumn) else [scaling for _, scaling in column.parts]


def _column(does: str, learned: str) -> Any:
    try:
        if not isinstance(learned, str) or len(learned) > MAX_JSON_BYTES:
            raise ValueError("it is no text, or too long")
        column = msgspec.json.decode(learned, type=AnyColumn)
        if not isinstance(column, STEPS[does][1]):
            raise ValueError("its column is of another kind")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"A step of a pipeline cannot be read ({str(error).rstrip('.')}). Take the pipeline's file as it was "
            "written, or export the model again."
        ) from None
    return column


def _table(frame: Any, name: str) -> Any:
    """Read a frame of one column as Arrow."""
    import pyarrow as pa

    table = _converted(frame)
    if table is None:
        raise _odd(frame, name)
    return table.cast(pa.schema([(field.name, without_view(field.type)) for field in table.schema]))


def _converted(frame: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, OverflowError):
        return None


def _odd(frame: Any, name: str) -> InputError:
    """Name the first value that those before it do not go with: a column of pandas may have several types."""
    row = bisect_left(range(len(frame)), True, key=lambda row: _converted(frame[: row + 1]) is None)
    kind = type(list(frame[name])[row]).__name__
    return InputError(
        f"column {name!r}, {BY_NUMBER(row)}: a value of the type {kind} does not go with those before it. "
        "Correct it: a column has one type, numbers, text or dates."
    )


def _raw(column: Measured, block: Cells) -> Floats:
    if isinstance(column, NumberColumn):
        return numbers(block)[:, np.newaxis]
    times = moments(block, column.format)
    return np.column_stack([part_of(block, times, part) for part, _ in column.parts])


def _values(column: Measured, block: Cells) -> Floats:
    """Read values, of which none may be missing where nothing stands for them."""
    values = _raw(column, block)
    if scalings(column)[0].fill is None:
        scalings(column)[0].filled(block, values[:, 0])
    return values


def _first(column: Measured, block: Cells) -> Floats:
    return _raw(column, block)[:, :1]


def _shaped(column: NumberColumn, values: Floats) -> Floats:
    block = Cells(column.column, None, np.arange(len(values)))
    return column.shaped(block, values[:, 0])[:, np.newaxis]


def _levels(column: CategoryColumn, block: Cells) -> npt.NDArray[Any]:
    """Write each level as that of its column, or as the reference."""
    unseen = OTHER if column.rare else column.reference
    shown = [column.reference, *column.levels, *[OTHER] * len(column.rare), unseen]
    return np.array(shown, dtype=object)[column.places(block)][:, np.newaxis]


# What each does, and with which columns.
STEPS: dict[str, tuple[Any, Any]] = {
    "values": (_values, Measured),
    "first": (_first, Measured),
    "levels": (_levels, CategoryColumn),
    "shape": (_shaped, NumberColumn),
}
learn_types(AnyColumn)
