"""Puts together what Gram mode gathered: moments of each party's columns, and products across parties."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from colonnade.contracts import Roster
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.gram import Summary, join_bases


@dataclass(frozen=True, eq=False)
class GramMoments:
    """What a party tells of its c columns: their weighted mean, and R, (c, c), with R'R their Gram matrix about it."""

    mean: Floats
    factor: Floats


def summary(
    roster: Roster,
    moments: Mapping[str, GramMoments],
    products: Mapping[tuple[str, str], Floats],
    weights: Floats,
    largest_weight: float,
    rounding: float,
) -> Summary:
    """Put moments and products together: features in the order of the roster, the label last.

    Parameters
    ----------
    moments : mapping of str to GramMoments
        By weights relative to the largest.
    products : mapping of (str, str) to ndarray of float64, shape (c_j, c_l)
        Q_j'Q_l of each pair.
    weights : ndarray of float64, shape (m,)
        The rows'; the largest is that of the whole coreset.
    rounding : float
        Of a product.
    """
    factors = [moments[party].factor for party in roster.names]
    ends = np.cumsum([len(factor) for factor in factors])
    places = {p: slice(end - len(f), end) for p, f, end in zip(roster.names, factors, ends, strict=True)}
    # A direction is there where its line of the factor is not zero; its norm is 1.
    joined = np.diag(np.concatenate([factor.any(axis=1) for factor in factors]).astype(np.float64))
    for (first, second), block in products.items():
        joined[places[first], places[second]] = block
        joined[places[second], places[first]] = block.T
    tolerance = rounding * np.sqrt(len(joined))
    if np.linalg.eigvalsh(joined)[0] < -100 * tolerance:
        raise senseless(*roster.names)
    triangle = np.sqrt(largest_weight) * join_bases(factors, joined, tolerance)
    order = _label_last(roster)
    mean = np.concatenate([moments[party].mean for party in roster.names])
    return Summary(float(weights.sum()), mean[order], triangle[:, order])


def _label_last(roster: Roster) -> Rows:
    """Order columns as they come, each party's features and then its label, so that the label is the last of all."""
    is_label = [
        column == card.n_features
        for card in roster.cards
        for column in range(card.n_features + (card.label_name is not None))
    ]
    return np.argsort(is_label, kind="stable")


def senseless(*parties: str) -> RemoteProtocolError:
    """Build the error for products that no columns have."""
    return RemoteProtocolError(
        f"The products of the columns of {', '.join(parties)} cannot be those of unit columns: one of them shared "
        "something else, and shares do not show which. Nothing of it was used; see that all run the same version."
    )
