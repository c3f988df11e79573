"""Messages to bytes and back: MessagePack over a closed set of kinds.

Bytes may come from anyone. Decoding gives a message of a known kind or `RemoteProtocolError`; nothing is allocated
beyond a few hundred bytes for each byte received, and nothing in them names code to run.

Arrays travel as MessagePack extensions, little-endian: a vector is its numbers alone, a matrix is preceded by its
two dimensions, and marks are bits, preceded by their number. Whole numbers take fewer bytes where they can: ascending
ones (row ids) travel as the Rice code of their gaps, others (labels) with as many bits each as the largest needs.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any, get_args

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError, RemoteProtocolError
from colonnade.kernels.arrays import Rows
from colonnade.kernels.bits import pack_bits, read_varints, unpack_bits, varint
from colonnade.kernels.row_ids import MAX_ROW_ID, decode_row_ids, encode_row_ids, is_ascending
from colonnade.messages import MAX_MESSAGE_BYTES, MAX_NUMBERS, Message

FLOAT_VECTOR, INT_VECTOR, FLOAT_MATRIX, BITS, ASCENDING, SMALL_INTS = 1, 2, 3, 4, 5, 6
# Errors quote what was received; it can be of any length, and their text goes to logs.
MAX_QUOTED = 200
FLOATS = np.dtype(np.float64)
DIMENSIONS = np.dtype("<u4")
BIT_COUNT = np.dtype("<u8")
# Short lists of row ids are kept coded: what a party drew is told to all others, in as many messages.
SHORT, KEPT_CODES = 1024, 1024
NOTHING = msgspec.msgpack.Ext(FLOAT_VECTOR, b"")
WIRE_TYPES = {
    (np.dtype(np.float64), 1): FLOAT_VECTOR,
    (np.dtype(np.int64), 1): INT_VECTOR,
    (np.dtype(np.float64), 2): FLOAT_MATRIX,
}


class Codec:
    """Encodes and decodes a closed set of kinds; no message may be larger than `max_bytes`, in either direction."""

    def __init__(self, kinds: Iterable[type[Message]], max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self.kinds = frozenset(kinds)
        self.max_bytes = max_bytes
        union: Any = reduce(or_, sorted(self.kinds, key=lambda kind: kind.__name__))
        self._decoder = msgspec.msgpack.Decoder(union, ext_hook=_unpack_array, dec_hook=_check_array)

    def encode(self, message: Message) -> bytes:
        """Turn a message into bytes."""
        encoded = wire_bytes(message)
        self._check_size(message, len(encoded))
        return encoded

    def sizes(self, messages: Sequence[Message]) -> list[int]:
        """Count the bytes that `encode` gives, without making them: of arrays only whole numbers are encoded, once."""
        measure, sizes = _Measure(), []
        for message in messages:
            sizes.append(size := measure.size(message))
            self._check_size(message, size)
        return sizes

    def _check_size(self, message: Message, size: int) -> None:
        if size > self.max_bytes:
            raise InputError(
                f"One {message.kind} message would take {size:,} bytes; the limit is {self.max_bytes:,}. "
                "Ask for fewer rows: a coreset instead of all rows, or a smaller size."
            )

    def decode(self, data: bytes, *, party: str | None = None) -> Message:
        """Turn bytes, be they anything at all, into a message of one of the kinds, or a `RemoteProtocolError`."""
        if len(data) > self.max_bytes:
            raise RemoteProtocolError(
                f"A message of {len(data):,} bytes was received; the limit is {self.max_bytes:,}.",
                party=party,
            )
        try:
            message: Message = self._decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise RemoteProtocolError(
                f"{len(data):,} bytes received from {party or 'the peer'} are not a Colonnade message: "
                f"{str(error)[:MAX_QUOTED]}. "
                "Check that the peer runs a compatible version.",
                party=party,
            ) from error
        return message


def wire_bytes(message: Message) -> bytes:
    """Write a message as it travels, whatever its size."""
    return msgspec.msgpack.encode(message, enc_hook=_pack_array)


class _Measure:
    """Counts bytes of messages that are there all the while; what is told to many parties is measured once."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}
        self._left_out = 0

    def size(self, message: Message) -> int:
        """Count the bytes of one."""
        self._left_out = 0
        return len(msgspec.msgpack.encode(message, enc_hook=self._leave_out)) + self._left_out

    def _leave_out(self, value: object) -> msgspec.msgpack.Ext:
        """Leave out what an array is written as."""
        length = self._known.get(id(value))
        if length is None:
            length = self._known[id(value)] = _ext_bytes(_length(value)) - _ext_bytes(0)
        self._left_out += length
        return NOTHING


def _length(value: object) -> int:
    """Count the bytes of an array's extension: it follows from the shape, but for whole numbers, which are coded."""
    if isinstance(value, np.ndarray) and value.dtype == FLOATS and value.ndim in (1, 2):
        return value.nbytes + (0 if value.ndim == 1 else 2 * DIMENSIONS.itemsize)
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim == 1:
        return BIT_COUNT.itemsize + -(-len(value) // 8)
    return memoryview(_pack_array(value).data).nbytes


def _ext_bytes(length: int) -> int:
    """Count the bytes of a MessagePack extension of so many bytes, with its code and length."""
    if length in (1, 2, 4, 8, 16):
        return 2 + length
    return length + (3 if length < 1 << 8 else 4 if length < 1 << 16 else 6)


def _pack_array(value: object) -> msgspec.msgpack.Ext:
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim == 1:
        return msgspec.msgpack.Ext(BITS, np.array(len(value), BIT_COUNT).tobytes() + np.packbits(value).tobytes())
    if not isinstance(value, np.ndarray) or (value.dtype, value.ndim) not in WIRE_TYPES:
        raise NotImplementedError(f"{type(value).__name__} has no wire form")
    if value.dtype == np.int64:
        is_kept = value.size <= SHORT and not value.flags.writeable
        if packed := _packed_once(_Same(value)) if is_kept else _packed_numbers(value):
            return packed
    # Copied as seldom as may be: a message can be large.
    numbers = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data
    if value.ndim == 1:
        return msgspec.msgpack.Ext(WIRE_TYPES[value.dtype, 1], numbers)
    dimensions = np.array(value.shape, dtype=DIMENSIONS).tobytes()
    return msgspec.msgpack.Ext(WIRE_TYPES[value.dtype, value.ndim], b"".join([dimensions, numbers]))


def _unpack_array(code: int, data: memoryview) -> npt.NDArray[Any]:
    if code == FLOAT_VECTOR:
        return _numbers(data, np.float64)
    if code == INT_VECTOR:
        return _numbers(data, np.int64)
    if code == FLOAT_MATRIX:
        n_rows, n_columns = (int(size) for size in np.frombuffer(data[: 2 * DIMENSIONS.itemsize], DIMENSIONS))
        matrix = _numbers(data[2 * DIMENSIONS.itemsize :], np.float64)
        if matrix.size != n_rows * n_columns:
            raise ValueError(f"{matrix.size} numbers do not fill a matrix of {n_rows} x {n_columns}")
        return matrix.reshape(n_rows, n_columns)
    if code == BITS:
        return _bits(data)
    if code == ASCENDING:
        return _frozen(decode_row_ids(data, MAX_NUMBERS))
    if code == SMALL_INTS:
        return _frozen(_read_small_ints(data))
    raise ValueError(f"unknown array code {code}")


class _Same:
    """An array that equals itself alone: its numbers need not be compared, and it lives as long as this does."""

    __slots__ = ("array",)

    def __init__(self, array: Rows) -> None:
        self.array = array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.array is other.array

    def __hash__(self) -> int:
        return id(self.array)


@lru_cache(KEPT_CODES)
def _packed_once(numbers: _Same) -> msgspec.msgpack.Ext | None:
    return _packed_numbers(numbers.array)


def _packed_numbers(numbers: Rows) -> msgspec.msgpack.Ext | None:
    if is_ascending(numbers):
        return msgspec.msgpack.Ext(ASCENDING, encode_row_ids(numbers))
    if numbers.min() >= 0 and numbers.max() <= MAX_ROW_ID:
        return msgspec.msgpack.Ext(SMALL_INTS, _small_ints(numbers))
    return None


def _small_ints(numbers: Rows) -> bytes:
    width = int(numbers.max()).bit_length()
    return varint(len(numbers)) + bytes([width]) + pack_bits(numbers.astype(np.uint64), width)


def _read_small_ints(data: memoryview) -> Rows:
    (count, width), packed = read_varints(data, 2)
    if width == 0 or count > MAX_NUMBERS:  # numbers of no bits are ascending, and could be any number of them
        raise ValueError(f"{count} numbers of {width} bits")
    return unpack_bits(packed, count, width).astype(np.int64)


def _bits(data: memoryview) -> npt.NDArray[Any]:
    (count,) = (int(number) for number in np.frombuffer(data[: BIT_COUNT.itemsize], BIT_COUNT))
    packed = np.frombuffer(data[BIT_COUNT.itemsize :], np.uint8)
    if len(packed) != -(-count // 8):
        raise ValueError(f"{len(packed)} bytes do not hold {count} marks")
    marks = np.unpackbits(packed, count=count).astype(np.bool_)
    if np.packbits(marks).tobytes() != packed.tobytes():
        raise ValueError("there are marks after the last row")  # one form for one meaning
    return _frozen(marks)


def _numbers(data: memoryview, dtype: type[np.generic]) -> npt.NDArray[Any]:
    # A copy: extension bytes start anywhere, and BLAS wants aligned memory.
    return _frozen(np.frombuffer(data, np.dtype(dtype).newbyteorder("<")).astype(dtype))


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def _check_array(declared: Any, value: object) -> npt.NDArray[Any]:
    # `declared` is ndarray[shape, dtype[scalar]], as the message's field is annotated.
    (scalar,) = get_args(get_args(declared)[1])
    if not isinstance(value, np.ndarray) or value.dtype != np.dtype(scalar):
        raise ValueError(f"expected an array of {scalar.__name__}")
    return value
