"""Communication as the paper prints it: formulas, in units of one number. Counts are the ledger's, and stand apart."""

from colonnade.paper.design import Draw, Part
from colonnade.tasks import KMeans


def printed_units(part: Part, solver: str, draw: Draw, epochs: int | None) -> int:
    """Give what the paper prints for drawing the rows and for solving on them."""
    return _drawing_units(part, draw) + _solving_units(part, solver, draw, epochs)


def _drawing_units(part: Part, draw: Draw) -> int:
    """Give T + 3 m T for a coreset, m T for uniform draws, nothing for all rows."""
    n_parties = len(part.widths)
    return {"": 0, "C-": n_parties + 3 * draw.size * n_parties, "U-": draw.size * n_parties}[draw.prefix]


def _solving_units(part: Part, solver: str, draw: Draw, epochs: int | None) -> int:
    """Give m d for sending rows, m T + k d for DistDim, 3 m T an epoch for SAGA; m is n for all rows."""
    m, d, n_parties = draw.size, sum(part.widths), len(part.widths)
    if solver == "SAGA":
        return 3 * m * n_parties * (epochs or 0)
    if solver == "DistDim":
        return m * n_parties + (part.learn.n_clusters if isinstance(part.learn, KMeans) else 0) * d
    return m * d
