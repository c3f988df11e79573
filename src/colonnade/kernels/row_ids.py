"""Row ids in few bits: a sorted multiset as the Rice code of its gaps.

The gaps of m rows among n are nearly geometric with mean n / m, for which a Rice code takes about log2(n / m) + 1.5
bits each: within 15 % of the multiset's entropy, log2 C(n + m - 1, m) / m bits, for m up to 2 n. Beyond that most gaps
are 0 and still take a bit.
"""

import math
from itertools import accumulate

import numpy as np

from colonnade.kernels.arrays import Rows
from colonnade.kernels.bits import (
    LOG_GOLDEN,
    Buffer,
    Numbers,
    read_varints,
    rice_decode,
    rice_decode_few,
    rice_encode,
    rice_parameters,
    varint,
)

# Up to so many row ids are read one by one: each of many parties draws few, and all read what all have drawn.
FEW = 32
# No table has more rows.
MAX_ROW_ID = 1 << 40


def is_ascending(rows: Rows) -> bool:
    """Tell whether `encode_row_ids` can write these numbers: ascending, from 0 to 2^40."""
    return not rows.size or bool(rows[0] >= 0 and rows[-1] <= MAX_ROW_ID and np.all(rows[1:] >= rows[:-1]))


def encode_row_ids(rows: Rows) -> bytes:
    """Write a sorted multiset of row ids, from 0 to 2^40: how many, the first, the Rice parameter, and the gaps.

    No rows are no bytes.
    """
    if not rows.size:
        return b""
    gaps: Numbers = (rows[1:] - rows[:-1]).view(np.uint64)[np.newaxis]
    parameters = rice_parameters(gaps)
    return varint(len(rows)) + varint(int(rows[0])) + bytes(parameters) + rice_encode(gaps, parameters)


def decode_row_ids(data: Buffer, most: int) -> Rows:
    """Read what `encode_row_ids` wrote of at most so many rows; anything else is a `ValueError`.

    Nothing is allocated beyond about 250 bytes for each byte of `data`.
    """
    if not len(data):
        return np.empty(0, np.int64)
    (count, first, k), code = read_varints(data, 3)
    if not (1 <= count <= most and first <= MAX_ROW_ID):  # no rows are no bytes: one form for one meaning
        raise ValueError(f"{count} rows from {first} on, where 1 to {most} can be")
    if count <= FEW:
        gaps_of_few = rice_decode_few(code, count - 1, k, MAX_ROW_ID - first)
        return np.fromiter(accumulate(gaps_of_few, initial=first), np.int64, count)
    (gaps,) = rice_decode(code, count - 1, [k], MAX_ROW_ID - first)
    rows = np.full(count, first)
    rows[1:] += np.cumsum(gaps, dtype=np.int64)
    return rows


def row_id_bytes(n_rows: int, size: int) -> float:
    """Predict the bytes of `size` rows drawn evenly among `n_rows`, with replacement.

    Rows drawn by scores crowd together and take a little less.
    """
    if not size:
        return 0.0
    # P(gap >= x) is about (n / (n + m))^x; a unary part is then geometric too.
    decay = math.log1p(size / n_rows)
    # Near the best 2^k for gaps that thin out geometrically; no other k than its neighbours can be better.
    near = max(round(math.log2(LOG_GOLDEN / decay)), 1)
    bits = min(k + 1 + math.exp(-(decay * 2**k)) / -math.expm1(-(decay * 2**k)) for k in range(near - 1, near + 2))
    return len(varint(size)) + len(varint(n_rows // size)) + 1 + (size - 1) * bits / 8
