from typing import Annotated, ClassVar

import numpy as np
import pytest

from colonnade.catalogue import kinds
from colonnade.messages import Message, Reveals, disclosures, sendable_floats, sendable_rows
from colonnade.sampling.plain.messages import AskScores, DrawnRows, DrawRows, Total
from colonnade.signing import SignedRows
from colonnade.solvers.central import Columns


@pytest.mark.parametrize("kind", sorted(kinds(), key=str))
def test_every_field_says_what_it_reveals(kind: type[Message]) -> None:
    assert set(disclosures(kind)) == set(kind.__struct_fields__)
    assert kind.phase


def test_a_field_that_says_nothing_is_a_type_error() -> None:
    class Silent(Message, frozen=True):
        phase: ClassVar[str] = "test"

        value: int

    with pytest.raises(TypeError, match=r"Silent\.value must be annotated with exactly one Reveals"):
        disclosures(Silent)


def test_a_field_that_says_two_things_is_a_type_error() -> None:
    class Torn(Message, frozen=True):
        phase: ClassVar[str] = "test"

        value: Annotated[int, Reveals.SCORES, Reveals.LABELS]

    with pytest.raises(TypeError, match=r"Torn\.value must be annotated with exactly one"):
        disclosures(Torn)


def test_units_count_numbers_and_not_seeds() -> None:
    assert Total(3.5).units() == 1
    assert DrawRows(10, seed=99, stratified=True).units() == 1
    assert DrawnRows(sendable_rows([1, 1, 2]), b"signature").units() == 3
    others = (SignedRows("weather", sendable_rows([4]), b"signature"),)
    assert AskScores(8, others, 0, 99).units() == 8, "all of S, as in the paper"
    assert Columns(sendable_floats(np.ones((4, 3))), sendable_floats(np.ones(4))).units() == 16


def test_only_fields_that_are_there_reveal() -> None:
    features = sendable_floats(np.ones((4, 3)))
    assert Columns(features, None).reveals() == (Reveals.FEATURES,)
    assert Columns(features, sendable_floats(np.ones(4))).reveals() == (Reveals.FEATURES, Reveals.LABELS)


def test_sendable_arrays_are_what_a_decoder_gives() -> None:
    source = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    array = sendable_floats(source)
    assert array.flags.c_contiguous
    assert not array.flags.writeable
    assert source.flags.writeable, "the caller's own array is left alone"
    assert sendable_rows(np.array([1, 2], dtype=np.int32)).dtype == np.int64
