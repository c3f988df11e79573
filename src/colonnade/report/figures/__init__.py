"""The figures of a report page, drawn by matplotlib as SVG.

It is a library that is here anyway, draws without a browser, and gives text that stays text; what it writes needs no
script on the page. Colours are classes, which the page's theme fills in by `FIGURE_CSS`.
"""

from colonnade.report.figures.calibration import calibration
from colonnade.report.figures.centres import centres
from colonnade.report.figures.coefficients import CoefficientBar, coefficients
from colonnade.report.figures.colours import FIGURE_CSS, FIGURE_DARK, FIGURE_LIGHT
from colonnade.report.figures.figure import Figure
from colonnade.report.figures.frontier import FrontierPoint, frontier
from colonnade.report.figures.roc import roc
from colonnade.report.figures.rounds import rounds
from colonnade.report.figures.traffic import bytes_by_phase_and_party
from colonnade.report.figures.weights import weights

__all__ = [
    "FIGURE_CSS",
    "FIGURE_DARK",
    "FIGURE_LIGHT",
    "CoefficientBar",
    "Figure",
    "FrontierPoint",
    "bytes_by_phase_and_party",
    "calibration",
    "centres",
    "coefficients",
    "frontier",
    "roc",
    "rounds",
    "weights",
]
