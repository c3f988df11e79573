"""Whether classes can be told apart without error, in whole or in part, so that the logistic loss has no minimum.

It has none if the parameters can move without an end so that no row's own class falls behind another, and some get
ahead. A column that is not zero in rows of one class only is enough.
"""

import numpy as np
import scipy

from colonnade.kernels.arrays import Flags, Floats, Rows

SURE = 10.0  # where a row's class is so far ahead of another near the least loss, it might get ahead without an end
NULL = 1e-13  # of the largest eigenvalue: a direction in which rows have no part
STILL = 1e-6  # of a row's length: what counts as not moved
CONSTRAINTS = 2_000  # that a linear programme is given at once


def told_apart(logits: Floats, codes: Rows) -> bool:
    """Say whether every row's own logit, of those of shape (m, K), is the largest."""
    gaps, others = _gaps(logits, codes)
    return bool(gaps[others].min() > STILL * gaps.max())


def growing(rows: Floats, codes: Rows, contrasts: Floats, psi: Floats) -> Floats | None:
    """Find how parameters, shape (q, p), may grow without an end while the loss falls; None where they may not.

    `rows` has shape (m, p), `contrasts` (K, q); at psi the loss is nearly as low as it gets. Pairs of a row and another
    class that are still in doubt there cannot move. That leaves few directions, and among those a linear programme
    finds one along which all other pairs get apart, or none.
    """
    logits = rows @ psi.T @ contrasts.T
    gaps, others = _gaps(logits, codes)
    if told_apart(logits, codes):
        return psi
    free = _free_directions(rows, codes, contrasts, others & (gaps < SURE))
    if not free.shape[1]:
        return None
    changes = _changes(rows, codes, contrasts, others & (gaps >= SURE), free)
    found = free @ _all_grow(changes)
    return found.reshape(psi.shape) if found.any() else None


def _gaps(logits: Floats, codes: Rows) -> tuple[Floats, Flags]:
    """Compute how far each row's own logit is ahead of each, and which of these are other classes'; both (m, K)."""
    own = np.take_along_axis(logits, codes[:, None], axis=1)
    return own - logits, np.arange(logits.shape[1]) != codes[:, None]


def _free_directions(rows: Floats, codes: Rows, contrasts: Floats, doubtful: Flags) -> Floats:
    """Find the parameters' directions, shape (q p, r), along which no doubtful pair moves."""
    G = np.zeros((contrasts.shape[1] * rows.shape[1],) * 2)
    for own, other in np.ndindex(doubtful.shape[1], doubtful.shape[1]):
        some = rows[doubtful[:, other] & (codes == own)]
        apart = contrasts[own] - contrasts[other]
        G += np.kron(np.outer(apart, apart), some.T @ some)
    values, vectors = np.linalg.eigh(G)
    return vectors[:, values <= NULL * values.max(initial=0.0)]


def _changes(rows: Floats, codes: Rows, contrasts: Floats, sure: Flags, free: Floats) -> Floats:
    """Compute how each sure pair moves along each free direction, scaled to length 1; shape (pairs, r)."""
    directions = free.reshape(contrasts.shape[1], rows.shape[1], free.shape[1])
    changes = [np.empty((0, free.shape[1]))]
    for own, other in np.ndindex(sure.shape[1], sure.shape[1]):
        some = rows[sure[:, other] & (codes == own)]
        moves = some @ np.tensordot(contrasts[own] - contrasts[other], directions, axes=1)
        lengths = np.linalg.norm(moves, axis=1)
        moved = lengths > STILL * np.linalg.norm(some, axis=1)
        changes.append(moves[moved] / lengths[moved, None])
    return np.vstack(changes)


def _all_grow(changes: Floats) -> Floats:
    """Find the v, each entry within 1, with all changes v at least 0 and their sum as large as it gets.

    It is zero where only that is possible. Constraints that it breaks are brought in until it breaks none.
    """
    used = np.arange(0, len(changes), max(len(changes) // CONSTRAINTS, 1))
    while True:
        found: Floats = scipy.optimize.linprog(
            -changes.sum(axis=0), A_ub=-changes[used], b_ub=np.zeros(len(used)), bounds=(-1, 1)
        ).x
        if np.abs(found).max() < 0.5:  # what can grow at all grows to 1, and the rest is the programme's tolerance
            return np.zeros_like(found)
        gains = changes @ found
        broken = np.setdiff1d(np.flatnonzero(gains < -STILL), used)
        if not len(broken):
            return found
        used = np.concatenate([used, broken[np.argsort(gains[broken])[:CONSTRAINTS]]])
