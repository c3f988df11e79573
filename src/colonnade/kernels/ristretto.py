"""Points of ristretto255, a group of prime order, by libsodium (package `rbcl`); a list is 32 bytes a point.

Lists are worked on by all cores: libsodium runs outside Python's lock.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from colonnade import disk
from colonnade.errors import UnsupportedError

POINT_BYTES, HASHED_BYTES = 32, 64
# Points a thread takes at a time.
BATCH = 1024


class NoPointError(ValueError):
    """These bytes are no point of the group, or the one that hides nothing."""


def check_available() -> None:
    """Require the package; it is an extra."""
    if find_spec("rbcl") is None:
        raise UnsupportedError(
            "Matching on a curve needs the package rbcl. Install it: pip install 'colonnade[align]'."
        )


def secret_scalar(uniform: bytes) -> bytes:
    """Make a number modulo the group's order of 64 uniform bytes."""
    scalar: bytes = _library().crypto_core_ristretto255_scalar_reduce(uniform)
    return scalar


def hashed_to_points(hashes: bytes) -> bytes:
    """Map hashes of 64 bytes to points, as libsodium does."""
    to_point = _library().crypto_core_ristretto255_from_hash
    return _on_all_cores(lambda batch: b"".join(map(to_point, batch)), _split(hashes, HASHED_BYTES))


def multiplied(points: bytes, scalar: bytes) -> bytes:
    """Multiply each point by a number."""
    times = _library().crypto_scalarmult_ristretto255
    try:
        return _on_all_cores(
            lambda batch: b"".join(times(scalar, point) for point in batch), _split(points, POINT_BYTES)
        )
    except RuntimeError as error:
        raise NoPointError(str(error)) from error


def _split(whole: bytes, width: int) -> list[bytes]:
    return [whole[start : start + width] for start in range(0, len(whole), width)]


@cache
def _library() -> Any:
    """Load libsodium, of which the package unpacks a copy for every process, and remove the copy once it is loaded."""
    library = import_module("rbcl")
    disk.discard(import_module("rbcl._sodium").lib_path)
    return library


def _on_all_cores(work: Callable[[Sequence[bytes]], bytes], items: Sequence[bytes]) -> bytes:
    batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
    if len(batches) <= 1:
        return b"".join(map(work, batches))
    with ThreadPoolExecutor() as threads:
        return b"".join(threads.map(work, batches))
