"""How many rows can be drawn."""

from colonnade.options import whole_number

# More rows than any coreset needs; a party draws no more, whoever asks.
MAX_SIZE = 1 << 24


def sample_size(size: int) -> int:
    """Require a number of rows that can be drawn and sent."""
    example = "A few thousand rows are usual: size=2000. AllRows() takes each row once."
    return whole_number("size", size, least=1, most=MAX_SIZE, example=example)
