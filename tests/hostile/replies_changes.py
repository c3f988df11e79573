"""Ways to change a reply: each field in each of its forms, whole messages, and bytes on the wire."""

import math
from typing import Any

import msgspec
import numpy as np

from colonnade.catalogue import codec
from colonnade.messages import Message, sendable_flags, sendable_floats, sendable_rows
from colonnade.sampling.selecting import Ready

CODEC = codec()
FLOATS = (0.0, -0.0, 1.0, -1.0, 1e9, -1e9, 1e99, -1e99, 1e100, 1e150, 1e300, 1e-99, 1e-150, 5e-324)
NOT_NUMBERS = (math.nan, math.inf, -math.inf)
FACTORS = (0.0, -1.0, 1e-12, 1e-3, 0.5, 0.999, 1.001, 2.0, 1e3, 1e9, 1e50)
INTS = (0, 1, -1, 2**31, 2**53, 2**62, -(2**40))
Draw = np.random.Generator


def changed_reply(reply: Message, others: list[Message], rng: Draw) -> tuple[str, bytes]:
    """Change a reply somehow; give the field that was changed, or what else was done, and the bytes that travel."""
    fields = reply.__struct_fields__
    pick = rng.random()
    if pick < 0.04 or not fields:
        return "(bytes)", other_bytes(CODEC.encode(reply), rng)
    if pick < 0.06:
        return "(kind)", CODEC.encode(Ready())
    if pick < 0.10 and others:  # what another party said, or what this one said before
        return "(another)", CODEC.encode(others[int(rng.integers(len(others)))])
    name = str(rng.choice(fields))
    try:
        changed = msgspec.structs.replace(reply, **{name: other_value(getattr(reply, name), rng)})
        return name, CODEC.encode(changed)
    except (NotImplementedError, OverflowError):  # it has no form on the wire
        return "(bytes)", other_bytes(CODEC.encode(reply), rng)


def other_value(value: Any, rng: Draw) -> Any:
    """Change a value of any type that a field can have."""
    if value is None:
        return [0.0, 1.0, 1e99, b"", bytes(56), sendable_floats(np.ones(3)), ()][int(rng.integers(7))]
    if isinstance(value, np.ndarray):
        return other_array(value, rng)
    if rng.random() < 0.05:
        return None
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([*INTS, value + 1, value - 1, 2 * value, -value]))
    if isinstance(value, float):
        return other_float(value, rng)
    if isinstance(value, bytes):
        return other_bytes(value, rng)
    if isinstance(value, str):
        return str(rng.choice(["", "x" * 500, value + "!", "bank", "\x00"]))
    if isinstance(value, msgspec.Struct):
        name = str(rng.choice(value.__struct_fields__))
        return msgspec.structs.replace(value, **{name: other_value(getattr(value, name), rng)})
    return other_tuple(value, rng)


def other_float(value: float, rng: Draw) -> float:
    if rng.random() < 0.15:
        return float(rng.choice(NOT_NUMBERS))
    if rng.random() < 0.4:
        return value * float(rng.choice(FACTORS))
    return float(rng.choice(FLOATS)) if rng.random() < 0.7 else value + float(rng.choice([1e-9, 1e-3, 1.0, -1.0]))


def other_bytes(value: bytes, rng: Draw) -> bytes:
    way = rng.integers(7)
    if way == 0 or not value:
        return b"" if value else b"\x00"
    if way == 1:
        return value[:-1]
    if way == 2:
        return value + b"\x00"
    if way == 3:
        return rng.bytes(len(value))
    if way == 4:
        return bytes([int(rng.choice([0, 255]))]) * len(value)
    changed = bytearray(value)
    for _ in range(1 if way == 5 else 8):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def other_tuple(value: tuple[Any, ...], rng: Draw) -> tuple[Any, ...]:
    way, at = rng.integers(4), int(rng.integers(max(len(value), 1)))
    if way == 0 or not value:
        return value[:-1]
    if way == 1:
        return (*value, value[at])
    if way == 2:
        return value[::-1]
    return (*value[:at], other_value(value[at], rng), *value[at + 1 :])


def other_array(array: np.ndarray, rng: Draw) -> np.ndarray:
    """Change one number, all, their order, or the shape."""
    made = np.array(array)
    send = {"f": sendable_floats, "i": sendable_rows, "b": sendable_flags}[array.dtype.kind]
    way = rng.integers(12)
    if way < 4 and made.size:
        at = int(rng.integers(made.size))
        made.reshape(-1)[at] = other_value(made.reshape(-1)[at].item(), rng) or 0
    elif way < 6 and made.size:
        made = _all_changed(made, rng)
    elif way == 6:
        made = rng.permutation(made)
    elif way == 7:
        made = made[:-1]
    elif way == 8:
        made = np.concatenate([made, made[-1:]])
    elif way == 9 and len(made) > 1:
        made[int(rng.integers(len(made)))] = made[int(rng.integers(len(made)))]
    elif way == 10:
        made = np.ascontiguousarray(made.T) if made.ndim == 2 else made[::-1]
    else:
        made = made[:0] if made.ndim == 1 or rng.random() < 0.5 else made.reshape(-1)
    return send(made)


def _all_changed(made: np.ndarray, rng: Draw) -> np.ndarray:
    if made.dtype.kind == "b":
        return ~made if rng.random() < 0.5 else np.full_like(made, rng.random() < 0.5)
    if rng.random() < 0.5:
        return np.full_like(made, other_value(made.reshape(-1)[0].item(), rng) or 0)
    factor = float(rng.choice(FACTORS))
    with np.errstate(all="ignore"):
        return made * factor if made.dtype.kind == "f" else made + int(rng.choice(INTS))
