"""Scores in about 11 bits, or fewer: rounded in logarithm, since only their relative error matters."""

import numpy as np

from colonnade.kernels.arrays import Floats
from colonnade.kernels.bits import Buffer, Numbers, read_varints, rice_decode, rice_encode, rice_parameters, varint
from colonnade.kernels.quantise import MAX_CODE_SUM, Codes, unzigzag, zigzag

# Rounded scores are off by half of this at most, relative: less than 1e-3.
LOG_STEP = 1.9e-3
# Coarser ones may be off by about half of theirs.
LARGEST_LOG_STEP = 1.0


def round_scores(scores: Floats, log_step: float = LOG_STEP) -> Floats:
    """Round non-negative scores to powers of exp(log_step), for steps from 0.0019 to 1; 0 stays 0.

    Each is off by a factor of exp(log_step / 2) at most: by the default, less than a thousandth of itself.
    """
    return np.where(scores > 0, _scores(_score_codes(scores, log_step), log_step), 0.0)


def encode_scores(scores: Floats, log_step: float = LOG_STEP) -> bytes:
    """Write what `round_scores` gave by the same step: a code around the median, and which are zero.

    It takes about 11 bits each where they spread over a factor of three, or 5 if coarse.
    """
    codes = _score_codes(scores, log_step)
    centre = int(np.median(codes[scores > 0])) if (scores > 0).any() else 0
    numbers: Numbers = np.where(scores > 0, zigzag(codes - centre) + np.uint64(1), np.uint64(0))[np.newaxis]
    parameters = rice_parameters(numbers)
    return varint(int(zigzag(np.array([centre]))[0])) + bytes(parameters) + rice_encode(numbers, parameters)


def decode_scores(data: Buffer, count: int, log_step: float = LOG_STEP) -> Floats:
    """Read what `encode_scores` wrote of n scores; anything else is a `ValueError`.

    They are non-negative; possibly infinite, if the sender is no honest one.
    """
    (centre, k), code = read_varints(data, 2)
    (numbers,) = rice_decode(code, count, [k], MAX_CODE_SUM)
    codes = unzigzag(np.maximum(numbers.astype(np.uint64), 1) - np.uint64(1)) + unzigzag(np.array([centre], np.uint64))
    with np.errstate(over="ignore"):
        return np.where(numbers > 0, _scores(codes, log_step), 0.0)


def _score_codes(scores: Floats, log_step: float) -> Codes:
    positive = np.where(scores > 0, scores, 1.0)
    return np.rint(np.log(positive) / log_step).astype(np.int64)


def _scores(codes: Codes, log_step: float) -> Floats:
    return np.asarray(np.exp(codes * log_step))
