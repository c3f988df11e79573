"""What a job sheet leaves to choose."""

import msgspec

# The solvers that a planner chooses between.
PLANNED = ("central", "compact")


class Branches(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """What a run may choose between once it has looked at the data: by which solvers, on how many rows.

    The choice itself, a sampler and a solver, is told to all parties when it is made. Rows are drawn by scores, or
    `evenly` only: those of a pilot too.
    """

    solvers: tuple[str, ...]
    least: int
    most: int
    evenly: bool = False
