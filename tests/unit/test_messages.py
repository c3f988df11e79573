from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import pytest

from colonnade.catalogue import codec, kinds
from colonnade.diagnostics.audited_logits import AuditedLogits
from colonnade.diagnostics.audited_predictions import AuditedPredictions
from colonnade.evaluation.masked.messages import MaskedPredictions
from colonnade.evaluation.rounding import RoundedParts
from colonnade.messages import UNCOUNTED, Message, Reveals, disclosures, sendable_floats, sendable_rows
from colonnade.protocol.hello import WIRE_VERSION
from colonnade.sampling.plain.messages import AskScores, DrawnRows, DrawRows, Draws, Total
from colonnade.signing import SignedRows
from colonnade.solvers.central import Columns
from colonnade.solvers.saga.coded import CodedStep


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
    assert DrawRows(10, seed=99, draws=Draws.STRATIFIED).units() == 1
    assert DrawnRows(sendable_rows([1, 1, 2]), b"signature").units() == 3
    others = (SignedRows("weather", sendable_rows([4]), b"signature"),)
    assert AskScores(8, others, 0, 99).units() == 8, "all of S, as in the paper"
    assert Columns(sendable_floats(np.ones((4, 3))), sendable_floats(np.ones(4))).units() == 16


def test_only_fields_that_are_there_reveal() -> None:
    features = sendable_floats(np.ones((4, 3)))
    assert Columns(features, None).reveals() == (Reveals.FEATURES,)
    assert Columns(features, sendable_floats(np.ones(4))).reveals() == (Reveals.FEATURES, Reveals.LABELS)


GOLDEN = Path(__file__).parents[1] / "golden" / f"wire_v{WIRE_VERSION}.txt"
EXAMPLES = dict(line.rsplit(": ", 1) for line in GOLDEN.read_text().splitlines())


@pytest.mark.parametrize("name", EXAMPLES)
def test_numbers_are_told_by_the_fields_they_are_in(name: str) -> None:
    message = codec().decode(bytes.fromhex(EXAMPLES[name]))
    told = message.numbers_told(message.units())
    assert tuple(told) == message.reveals()
    assert not any(told[kind] for kind in told if kind in UNCOUNTED)
    for field, reveals in disclosures(type(message)).items():
        value = getattr(message, field)
        if isinstance(value, np.ndarray | bytes) and reveals not in UNCOUNTED:
            assert told[reveals] >= (value.size if isinstance(value, np.ndarray) else message.coded_rows()), field
    if type(message).units is Message.units and not message.coded_rows():
        assert sum(told.values()) == message.units()


def test_numbers_told_of_several_things_in_one_message() -> None:
    one, two, labels = sendable_floats([1.0]), sendable_floats([1.0, 1.0]), sendable_floats(np.ones(3))
    expected = {
        Columns(sendable_floats(np.ones((3, 2))), labels): {"features": 6, "labels": 3},
        CodedStep(5, b"codes", 8, 2, 0.5): {"labels": 5, "row ids": 1, "totals": 1},
        AuditedPredictions(10, two, two, None, b"codes", 0.0, 1.0): {"features": 4, "labels": 20, "moments": 2},
        AuditedLogits(10, one, one, b"codes", 0.0, 1.0, b"bits", 0.5, 0.1): {
            "features": 10,
            "moments": 2,
            "labels": 12,
        },
        RoundedParts(10, one, b"codes", 0.5): {"features": 10, "labels": 1},
        MaskedPredictions(bytes(70), 0.5, b"", b""): {"moments": 1},
    }
    for message, told in expected.items():
        _, _, reveals, numbers = message.facts()
        assert dict(zip(reveals, numbers, strict=True)) == told


def test_sendable_arrays_are_what_a_decoder_gives() -> None:
    source = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    array = sendable_floats(source)
    assert array.flags.c_contiguous
    assert not array.flags.writeable
    assert source.flags.writeable, "the caller's own array is left alone"
    assert sendable_rows(np.array([1, 2], dtype=np.int32)).dtype == np.int64
