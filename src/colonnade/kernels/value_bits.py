"""How many bits a rounded value takes, before any is written."""

import numpy as np
import scipy


def value_bits(step: float, spread: float = 1.0) -> float:
    """Predict the bits that a rounded normal value takes in its Rice code.

    `step` is in standard deviations of the column, and so is `spread`, the standard deviation among the rows sent:
    above 1 where rows are drawn by leverage.
    """
    ratio = spread / step
    reach = int(np.ceil(9 * ratio)) + 1
    codes = np.arange(-reach, reach + 1)
    # A dithered code is the rounded sum of a normal and a uniform variable: the average over both cell borders.
    ends = np.concatenate([codes - 1.0, [reach, reach + 1.0]]) / ratio
    integral = ends * scipy.special.ndtr(ends) + np.exp(-np.square(ends) / 2) / np.sqrt(2 * np.pi)
    chances = ratio * (integral[2:] - 2 * integral[1:-1] + integral[:-2])
    numbers = np.where(codes < 0, -2 * codes - 1, 2 * codes)
    return min(k + 1 + float(chances @ (numbers >> k)) for k in range(40))
