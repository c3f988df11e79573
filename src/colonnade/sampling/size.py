"""The one option samplers share."""

from colonnade.errors import InputError
from colonnade.messages import MAX_NUMBERS


def check_size(size: int) -> None:
    """Require a number of rows that can be drawn and sent.

    Parameters
    ----------
    size : int
        m, as the user gave it.
    """
    if isinstance(size, bool) or not isinstance(size, int):
        raise InputError(f"size must be a whole number, got {size!r}. Pass for instance size=1000.")
    if not 1 <= size <= MAX_NUMBERS:
        raise InputError(
            f"size must be between 1 and {MAX_NUMBERS:,}, got {size:,}. "
            "A few thousand rows are usual; AllRows() uses each row once."
        )
