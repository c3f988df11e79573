"""Points of ristretto255: test vectors of RFC 9496, and what is no point."""

import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from colonnade.errors import UnsupportedError
from colonnade.kernels import ristretto
from colonnade.kernels.ristretto import (
    BATCH,
    POINT_BYTES,
    NoPointError,
    check_available,
    hashed_to_points,
    multiplied,
    secret_scalar,
)

# RFC 9496, A.1: multiples of the generator, from 1 on; A.2 and A.3: encodings of no point, and a label to a point.
MULTIPLES = [
    "e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76",
    "6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919",
    "94741f5d5d52755ece4f23f044ee27d5d1ea1e2bd196b462166b16152a9d0259",
]
NO_POINTS = {
    "the identity": "00" * 32,
    "not below the field's order": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "all ones": "ff" * 32,
    "negative": "0100000000000000000000000000000000000000000000000000000000000000",
    "no square": "26948d35ca62e643e26a83177332e6b6afeb9d08e4268b650f1f5bbd8d81d371",
    "negative product": "3eb858e78f5a7254d8c9731174a94f76755fd3941c0ac93735c07ba14579630e",
    "minus one": "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
}
LABEL = b"Ristretto is traditionally a short shot of espresso coffee"
LABELLED = "3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46"


def scalar(number: int) -> bytes:
    return number.to_bytes(32, "little")


def test_multiples_of_the_generator() -> None:
    one = bytes.fromhex(MULTIPLES[0])
    assert [multiplied(one, scalar(number)).hex() for number in (1, 2, 3)] == MULTIPLES


def test_a_hash_is_mapped_as_the_standard_says() -> None:
    assert hashed_to_points(hashlib.sha512(LABEL).digest()).hex() == LABELLED


@pytest.mark.parametrize("name", NO_POINTS)
@pytest.mark.parametrize("place", [0, BATCH + 1])
def test_what_is_no_point_is_not_multiplied(name: str, place: int) -> None:
    """Also far down a list, in a batch that another thread works on."""
    points = [bytes.fromhex(MULTIPLES[1])] * (2 * BATCH)
    points[place] = bytes.fromhex(NO_POINTS[name])
    with pytest.raises(NoPointError):
        multiplied(b"".join(points), scalar(5))


def test_any_order_of_secrets_gives_the_same_points() -> None:
    secrets = [secret_scalar(hashlib.sha512(bytes([number])).digest()) for number in range(3)]
    hashes = [hashlib.sha512(number.to_bytes(2)).digest() for number in range(BATCH + 3)]
    start = hashed_to_points(b"".join(hashes))
    first = multiplied(multiplied(multiplied(start, secrets[0]), secrets[1]), secrets[2])
    assert first == multiplied(multiplied(multiplied(start, secrets[2]), secrets[0]), secrets[1])
    assert len({first[at : at + POINT_BYTES] for at in range(0, len(first), POINT_BYTES)}) == len(hashes)


def test_a_scalar_is_below_the_order() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    assert secret_scalar(order.to_bytes(64, "little")) == bytes(32)
    assert secret_scalar((order + 7).to_bytes(64, "little")) == scalar(7)


def test_nothing_is_nothing() -> None:
    assert multiplied(b"", scalar(3)) == hashed_to_points(b"") == b""


@contextmanager
def without_rbcl(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def find(name: str, *_: Any) -> ModuleSpec | None:
        assert name == "rbcl"
        return None

    with monkeypatch.context() as patch:
        patch.setattr(ristretto, "find_spec", find)
        patch.setitem(sys.modules, "rbcl", None)
        yield


def test_without_the_package_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_available()
    with without_rbcl(monkeypatch), pytest.raises(UnsupportedError, match=r"pip install 'colonnade\[align\]'"):
        check_available()
