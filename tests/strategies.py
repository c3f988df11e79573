"""Hypothesis strategies for every kind of message, derived from the annotations of its fields."""

from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from colonnade.catalogue import kinds
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.messages import Message, sendable_flags, sendable_floats, sendable_rows
from colonnade.protocol.splits import HoldOut

lengths = st.integers(0, 20)
row_ids = hnp.arrays("int64", lengths, elements=st.integers(0, 2**40)).map(np.sort)
labels = hnp.arrays("int64", lengths, elements=st.integers(0, 9))
shapes = st.tuples(lengths) | st.tuples(st.integers(0, 6), st.integers(0, 4))

LEAVES: dict[object, st.SearchStrategy[Any]] = {
    type(None): st.none(),
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**64 - 1) | st.integers(0, 2**40),
    float: st.floats(),
    str: st.text(),
    bytes: st.binary(),
    Floats: hnp.arrays("float64", shapes).map(sendable_floats),
    Rows: (hnp.arrays("int64", lengths) | row_ids | labels).map(sendable_rows),
    Flags: hnp.arrays("bool", lengths).map(sendable_flags),
    # Structs that check what they are made of.
    HoldOut: st.builds(HoldOut, st.floats(0, 1, exclude_min=True, exclude_max=True), st.integers(0, 2**63 - 1)),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Make values of a field's type, whatever travels in it."""
    if hint in LEAVES:
        return LEAVES[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return values(inner[0])
    if origin is Literal:
        return st.sampled_from(inner)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, inner))
    if origin is tuple and inner[1:] == (...,):
        return st.lists(values(inner[0]), max_size=4).map(tuple)
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if not issubclass(hint, msgspec.Struct):
        raise TypeError(f"no values of {hint} are known. Add them to LEAVES in {__file__}.")
    hints = get_type_hints(hint)
    return st.builds(hint, **{name: values(hints[name]) for name in hint.__struct_fields__})


MESSAGES: dict[type[Message], st.SearchStrategy[Message]] = {kind: values(kind) for kind in kinds()}
any_message = st.one_of(*(MESSAGES[kind] for kind in sorted(MESSAGES, key=lambda kind: kind.__name__)))
