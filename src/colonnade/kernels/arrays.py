"""The array types every layer speaks: float64 for numbers, int64 for row ids, bool for marks, int8 for classes."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int8]
