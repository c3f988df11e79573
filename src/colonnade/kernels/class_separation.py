"""Whether classes can be told apart without error, in part or in whole, so that the logistic loss has no minimum.

It has none if parameters can be moved without an end so that no row's own class falls behind any other, and some gains.
"""

import numpy as np
import scipy.optimize

from colonnade.kernels.arrays import Flags, Floats, Rows

SURE = 10.0  # a logit by which a row's class must be ahead of another before this is in question
NULL = 1e-13
MOVED = 1e-3
UNMOVED = 1e-6


def told_apart(logits: Floats, codes: Rows) -> bool:
    """Say whether every row's own logit, of shape (m, K), is the largest: then larger parameters are always better."""
    gaps, others = _gaps(logits, codes)
    return bool(gaps[others].min() > 0)


def _gaps(logits: Floats, codes: Rows) -> tuple[Floats, Flags]:
    """Compute how far each row's own logit is ahead of each, and which of them are other classes'; both (m, K)."""
    own = np.take_along_axis(logits, codes[:, None], axis=1)
    return own - logits, np.arange(logits.shape[1]) != codes[:, None]


def separated(rows: Floats, codes: Rows, contrasts: Floats, margins: Floats) -> bool:
    """Say whether the loss has no minimum, from margins where it is nearly as low as it gets.

    `rows` has shape (m, p), `contrasts` (K, q), `margins` (m, q). Pairs of a row and another class that are still in
    doubt cannot move: what is left are the directions that leave them alone, of which there are few. Among those a
    linear programme finds one along which all others' gaps grow, or none.
    """
    gaps, others = _gaps(margins @ contrasts.T, codes)
    if gaps[others].min() > 0:
        return True
    if gaps.max() < SURE:
        return False
    free = _free_directions(rows, codes, contrasts, others & (gaps < SURE))
    if not free.shape[1]:
        return False
    return _can_grow(_changes(rows, codes, contrasts, others & (gaps >= SURE), free))


def _free_directions(rows: Floats, codes: Rows, contrasts: Floats, doubtful: Flags) -> Floats:
    """Find the parameters' directions, shape (q p, r), that change no doubtful pair's gap."""
    p = rows.shape[1]
    G = np.zeros((contrasts.shape[1] * p,) * 2)
    for own in range(len(contrasts)):
        for other in range(len(contrasts)):
            some = rows[doubtful[:, other] & (codes == own)]
            apart = contrasts[own] - contrasts[other]
            if len(some):
                G += np.kron(np.outer(apart, apart), some.T @ some)
    values, vectors = np.linalg.eigh(G)
    return vectors[:, values <= NULL * values[-1]]


def _changes(rows: Floats, codes: Rows, contrasts: Floats, sure: Flags, free: Floats) -> Floats:
    """Compute how each sure pair's gap changes along each free direction, scaled to length 1; shape (pairs, r)."""
    which, other = np.nonzero(sure)
    apart = contrasts[codes[which]] - contrasts[other]
    directions = free.reshape(contrasts.shape[1], rows.shape[1], -1)
    changes = np.einsum("nq,np,qpr->nr", apart, rows[which], directions, optimize=True)
    lengths = np.linalg.norm(changes, axis=1)
    moved = lengths > UNMOVED * np.linalg.norm(rows[which], axis=1)
    return changes[moved] / lengths[moved, None]


def _can_grow(changes: Floats) -> bool:
    if not len(changes):
        return False
    found = scipy.optimize.linprog(-changes.sum(axis=0), A_ub=-changes, b_ub=np.zeros(len(changes)), bounds=(-1, 1))
    gains = changes @ found.x
    return bool(gains.max() > MOVED and gains.min() > -UNMOVED)
