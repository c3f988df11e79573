"""The product grid of the parties' clusterings (Ding et al. 2016): only the cells that some row falls in."""

from collections.abc import Sequence

import numpy as np

from colonnade.kernels.arrays import Floats, Rows


def occupied_cells(centers: Sequence[Floats], labels: Sequence[Rows], weights: Floats) -> tuple[Floats, Floats]:
    """Join the parties' centres, once for each combination of labels that occurs.

    The whole grid has k^T cells, the rows are in at most m of them: memory and time grow with m T.

    Each party has centres C^(j), shape (k_j, d_j), and labels π^(j)(i) < k_j, shape (m,), which say to which of them
    each row belongs. The cells, shape (c, d_1 + ... + d_T), have the centres of their labels side by side, in the order
    of the labels, the first party's first; with them come the summed weights of their rows, shape (c,).
    """
    cell_of_row = np.zeros(len(weights), dtype=np.int64)
    for own_centers, own_labels in zip(centers, labels, strict=True):
        # Numbered anew for each party, so that a number stays below m k_j however many parties there are.
        numbers = cell_of_row * len(own_centers) + own_labels
        _, one_row, cell_of_row = np.unique(numbers, return_index=True, return_inverse=True)
    cells = np.hstack(
        [own_centers[own_labels[one_row]] for own_centers, own_labels in zip(centers, labels, strict=True)]
    )
    return cells, np.bincount(cell_of_row, weights).astype(np.float64, copy=False)
