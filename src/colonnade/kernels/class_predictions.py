"""What a classification says of rows: chances of classes, and the most likely one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.kernels.arrays import Floats
from colonnade.kernels.logits import chances_of_last, probabilities
from colonnade.kernels.ranks import ROWS_AT_ONCE


@dataclass(frozen=True, eq=False)
class ClassPredictions:
    """Chances of classes, row by row. `numpy.asarray` of it gives the most likely class of each row.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (m, n_classes)
        They add up to 1 in each row.
    names : tuple of str or number
        The label's values, one for each column of probabilities.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> late = np.where(X[:, 0] > X[:, 1], "yes", "no")
    >>> federation = cn.Federation(cn.split_columns(X, late, [1, 1]))
    >>> run = federation.fit(cn.Classification(l2=1e-3), sampler=cn.AllRows())
    >>> found = federation.predict(run.model, rows=[4, 0])
    >>> found.names, found.probabilities.shape, bool((found.classes == late[[4, 0]]).all())
    (('no', 'yes'), (2, 2), True)
    """

    probabilities: Floats
    names: tuple[str | int | float, ...]

    @property
    def classes(self) -> npt.NDArray[Any]:
        """The most likely class of each row, of the label's values; shape (m,)."""
        likely: npt.NDArray[Any] = np.array(self.names)[self.probabilities.argmax(axis=1)]
        return likely

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, rows: Any) -> "ClassPredictions":
        """Take some rows, by their places."""
        return ClassPredictions(self.probabilities[rows].reshape(-1, len(self.names)), self.names)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.classes, dtype=dtype, copy=copy)


def class_chances(logits: Floats, out: Floats | None = None) -> Floats:
    """Turn logits, (m,) of the last of two classes or (m, K), into chances, a column for each class; or put them there.

    They come row by row.
    """
    chances = np.empty((len(logits), 2 if logits.ndim == 1 else logits.shape[1])) if out is None else out
    if logits.ndim == 1:
        for start in range(0, len(logits), ROWS_AT_ONCE):
            some = slice(start, start + ROWS_AT_ONCE)
            small = np.abs(logits[some])
            last = chances_of_last(logits[some], np.exp(np.negative(small, out=small), out=small))
            chances[some, 1] = last
            np.subtract(1.0, last, out=chances[some, 0])
    else:
        chances[:] = probabilities(logits)
    return chances
