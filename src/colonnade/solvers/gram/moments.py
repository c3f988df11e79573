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
    products: Floats,
    weight: float,
    largest_weight: float,
    rounding: float,
) -> Summary:
    """Put moments and products together: features in the order of the roster, the label last.

    Parameters
    ----------
    moments : mapping of str to GramMoments
        By weights relative to the largest.
    products : ndarray of float64, shape (c, c)
        Q_j'Q_l of each pair, in the order of names, above the parties' own blocks; the rest is not read.
    weight, largest_weight : float
        Of all rows, and the largest of the whole coreset.
    rounding : float
        Of a product.
    """
    factors, widths = [moments[party].factor for party in roster.names], [len(moments[p].mean) for p in sorted(moments)]
    owners = np.repeat(np.arange(len(widths)), widths)
    above = np.where(owners[:, np.newaxis] < owners, products, 0.0)
    by_name = dict(zip(sorted(moments), np.split(np.arange(len(owners)), np.cumsum(widths)[:-1]), strict=True))
    columns = np.concatenate([by_name[party] for party in roster.names])
    # A direction is there where its line of the factor is not zero; its norm is 1.
    joined = np.diag(np.concatenate([factor.any(axis=1) for factor in factors]).astype(np.float64))
    joined += (above + above.T)[np.ix_(columns, columns)]
    tolerance = rounding * np.sqrt(len(joined))
    if np.linalg.eigvalsh(joined)[0] < -100 * tolerance:
        raise senseless(*roster.names)
    triangle = np.sqrt(largest_weight) * join_bases(factors, joined, tolerance)
    order = _label_last(roster)
    mean = np.concatenate([moments[party].mean for party in roster.names])
    return Summary(weight, mean[order], triangle[:, order])


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
