"""What a party remembers outlives its process, and is never lost without a word."""

from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.node.memory_file import KeptInFile
from colonnade.protocol.memory import (
    AppliedNote,
    CommittedNote,
    CoresetNote,
    DistancesNote,
    ModelNote,
    Note,
    ScoredNote,
    SummedScoresNote,
    sum_note,
)

NOTES: list[Note] = [
    CoresetNote(b"c" * 32, b"\x00\x09", b"\x00\x01"),
    ModelNote(b"m" * 32),
    AppliedNote(b"m" * 32, 1),
    CommittedNote(b"a" * 32),
    DistancesNote(10),
    ScoredNote(b""),
    SummedScoresNote(b"", 40, 30),
    SummedScoresNote(b"", 0, 20, 2.5),
    sum_note("moments", np.arange(30), np.ones(30), 100, 4, 2),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.notes"


def test_notes_of_every_kind_outlive_the_process(path: Path) -> None:
    memory = KeptInFile(path)
    assert memory.notes() == frozenset()
    memory.keep(NOTES[:2])
    assert KeptInFile(path).notes() == set(NOTES[:2]), "also where nobody closed the file"
    memory.keep(NOTES)
    memory.close()
    assert KeptInFile(path).notes() == set(NOTES)


def test_what_is_known_is_not_written_again(path: Path) -> None:
    memory = KeptInFile(path)
    memory.keep([*NOTES, *NOTES])
    size = path.stat().st_size
    memory.keep(NOTES)
    KeptInFile(path).keep(NOTES)
    assert path.stat().st_size == size


def test_a_torn_note_was_never_told(path: Path) -> None:
    """It is on the disk, whole, before a reply leaves: one that is not whole belongs to no reply."""
    memory = KeptInFile(path)
    memory.keep(NOTES[:1])
    whole = path.stat().st_size
    memory.keep(NOTES[1:2])
    content = path.read_bytes()
    for cut in range(whole, len(content)):
        path.write_bytes(content[:cut])
        assert KeptInFile(path).notes() == set(NOTES[:1])


@pytest.mark.parametrize("position", [3, 40])
def test_a_damaged_memory_is_no_empty_one(path: Path, position: int) -> None:
    KeptInFile(path).keep(NOTES)
    broken = bytearray(path.read_bytes())
    broken[position] ^= 1
    path.write_bytes(broken)
    with pytest.raises(cn.InputError, match=r"memory.notes is damaged, .* Restore it from a copy"):
        KeptInFile(path)
    assert path.read_bytes() == broken
