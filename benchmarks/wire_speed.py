"""Time and size of rows and ids there and back: the codes against zstd level 3 on the same float64 and int64 numbers.

Both take turns, on one thread, and the medians of their processor times are compared.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.column_codes import common_step, decode_columns, encode_columns
from colonnade.kernels.moments import centre_and_spread
from colonnade.kernels.quantise import decode_codes, encode_codes, restore_dithered, round_with_dither
from colonnade.kernels.row_blocks import ArrayBlocks
from colonnade.kernels.row_ids import decode_row_ids, encode_row_ids
from colonnade.kernels.whitening import mix, whiten

ThereAndBack = Callable[[Floats], int]


def speed(
    features: Floats, labels: Floats | None, widths: tuple[int, ...], size: int, step: float, repeats: int = 41
) -> dict[str, dict[str, float]]:
    """Time encoding and decoding of rows, drawn evenly, and of their ids."""
    rows = np.sort(np.random.default_rng(0).integers(len(features), size=size))
    ends = np.cumsum(widths)
    columns = np.split(features, ends[:-1], axis=1)
    if labels is not None:
        columns[-1] = np.column_stack([columns[-1], labels])
    blocks = [np.asfortranarray(block) for block in columns]
    make = _scaled if labels is None else _whitened
    codes = [make(block, step) for block in blocks]
    taken = [np.ascontiguousarray(block[rows]) for block in blocks]
    zstd = pa.Codec("zstd", compression_level=3)

    def ours() -> int:
        return _ids(rows) + sum(there_and_back(values) for there_and_back, values in zip(codes, taken, strict=True))

    def theirs() -> int:
        return sum(_compressed(array, zstd) for array in (rows, *taken))

    works = {"ours": ours, "zstd": theirs}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    sizes = {}
    for _ in range(repeats):
        for name, work in works.items():
            started = time.process_time()
            sizes[name] = work()
            seconds[name].append(time.process_time() - started)
    return {name: {"ms": 1e3 * float(np.median(seconds[name])), "bytes": sizes[name]} for name in works}


def _ids(rows: Rows) -> int:
    data = encode_row_ids(rows)
    decode_row_ids(data, len(rows))
    return len(data)


def _compressed(array: np.ndarray, zstd: Any) -> int:
    raw = array.tobytes()
    packed = zstd.compress(raw)
    zstd.decompress(packed, len(raw))
    return len(packed)


def _whitened(block: Floats, step: float) -> ThereAndBack:
    """Whiten, round, encode, and all the way back."""
    whitening = whiten(ArrayBlocks(block))

    def there_and_back(values: Floats) -> int:
        data = encode_codes(round_with_dither(whitening.of(values), step, np.random.default_rng(1)))
        codes = decode_codes(data, len(whitening.mixing), len(values))
        mix(restore_dithered(codes, step, np.random.default_rng(1)), whitening.mean, whitening.mixing)
        return len(data)

    return there_and_back


def _scaled(block: Floats, step: float) -> ThereAndBack:
    """Write each column in its form, and read it again."""
    centres, spreads = centre_and_spread(ArrayBlocks(block), block.shape[1], centred=True)
    own_step = common_step(spreads, step)

    def there_and_back(values: Floats) -> int:
        levels, code = encode_columns(values, centres, own_step, np.random.default_rng(1))
        decode_columns(levels, code, values.shape, own_step, np.random.default_rng(1))
        return len(code) + levels.nbytes

    return there_and_back
