"""A coreset's weights, calibrated to what parties' moments say of all rows; and what that leaves of errors."""

from collections.abc import Callable

import numpy as np

from colonnade.contracts import Roster
from colonnade.coreset import ALL_ROWS, GIVEN, Coreset
from colonnade.kernels.arrays import Floats
from colonnade.kernels.calibration import (
    are_too_many,
    calibrate,
    calibration_strength,
    left_by_moments,
    moments_of,
    what_is_left,
)
from colonnade.kernels.fitted_rests import fitted_rests, rests_of_moments
from colonnade.kernels.residual_moments import ResidualMoments, calibrate_residuals, residual_moments
from colonnade.solvers.whitened_columns import WhitenedRows

Correction = Callable[[Floats], Floats]
Spans = tuple[Floats, Floats]


def calibrated(coreset: Coreset, parties: list[WhitenedRows], free: Floats, spans: Spans | None = None) -> Floats:
    """Bend the coreset's weights towards what parties' whitened columns are known to add up to.

    Of least squares the directions of features and label are given.
    """
    # One of the caller's own may stand for other rows than the parties hold; of all rows weights are right as they are.
    if coreset.sampler in (GIVEN, ALL_ROWS):
        return coreset.weights
    if spans is not None and _are_too_many(coreset, parties):
        return calibrate_residuals(
            coreset.weights, _residual_moments(coreset, parties, free, spans), coreset.total_weight, free
        )
    noise, strength = [party.noise(coreset.weights) for party in parties], calibration_strength(len(coreset))
    blocks = [party.values for party in parties]
    return calibrate(coreset.weights, blocks, coreset.total_weight, noise, strength, free)


def _are_too_many(coreset: Coreset, parties: list[WhitenedRows]) -> bool:
    return are_too_many(moments_of([party.values for party in parties]), len(coreset))


def _residual_moments(coreset: Coreset, parties: list[WhitenedRows], free: Floats, spans: Spans) -> ResidualMoments:
    blocks, noise = [party.values for party in parties], [party.noise(coreset.weights) for party in parties]
    return residual_moments(coreset.weights, blocks, coreset.total_weight, noise, *spans, free)


def corrections(
    coreset: Coreset, parties: list[WhitenedRows], free: Floats, spans: Spans | None = None
) -> tuple[Correction, Correction]:
    """Say what calibration leaves of the errors of sums: at most, and as they vary."""
    if spans is not None and _are_too_many(coreset, parties):
        moments = _residual_moments(coreset, parties, free, spans)
        few = moments.rows.T, moments.chance, moments.strength
        return lambda values: left_by_moments(values, *few), lambda values: rests_of_moments(values, *few)
    blocks = [party.values for party in parties]
    rest = (coreset.weights, blocks, coreset.total_weight, calibration_strength(len(coreset)), free)
    return lambda values: what_is_left(values, *rest), lambda values: fitted_rests(values, *rest)


def free_part(weights: Floats, roster: Roster) -> Floats:
    """Say which part of each weight is chance, (m,): none of a row's that stands for itself.

    Where rows count other than 1 the server does not know which these are.
    """
    if roster.weight_party is not None:
        return np.ones(len(weights))
    return np.clip(1 - 1 / np.maximum(weights, 1e-300), 0.0, 1.0)
