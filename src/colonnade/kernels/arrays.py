"""The array types every layer speaks: float64 for numbers, int64 for row ids, bool for marks."""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

# A table read again from the start on every call, as blocks of consecutive rows: kernels that need several
# passes never hold more than a block, so a table larger than memory is the same code.
Blocks = Callable[[], Iterable[Floats]]
