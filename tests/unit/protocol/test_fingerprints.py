"""A table's fingerprint changes with names and values, and with nothing else; and nobody can guess it."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import colonnade as cn
from colonnade.contracts import Table
from colonnade.kernels.blocks import BLOCK_ROWS, Block
from colonnade.node.memory_file import KeptInFile
from colonnade.privacy.identities import PinnedIdentity, identities_here, signing_key
from colonnade.protocol.fingerprints import (
    FINGERPRINT_BYTES,
    Fingerprint,
    Tables,
    _block_digest,
    fingerprint,
    key_here,
)
from colonnade.protocol.memory import KeptHere, Memory, TableKey
from colonnade.protocol.session import PartyData
from harness import parties_of

DATA = np.random.default_rng(0).normal(size=(BLOCK_ROWS + 5, 3))
LABEL = np.arange(len(DATA), dtype=np.float64)


def printed(data: Any = DATA, memory: Memory | None = None, **options: Any) -> bytes:
    party = cn.Party("bank", data, **{"label": LABEL, **options})
    people = identities_here(["bank"], os.urandom)
    return fingerprint(PartyData(party.table, people["bank"], memory=memory or KeptHere([key_here("bank")])))


def changed(row: int, column: int) -> Any:
    other = DATA.copy()
    other[row, column] = np.nextafter(other[row, column], 9.0)
    return other


def test_the_same_table_has_the_same_however_it_lies_in_memory() -> None:
    assert printed() == printed(np.asfortranarray(DATA)) == printed(DATA.tolist())
    assert len(printed()) == FINGERPRINT_BYTES


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (changed(0, 0), {}),
        (changed(BLOCK_ROWS + 4, 2), {}),
        (DATA[::-1], {}),
        (DATA[:, ::-1], {}),
        (DATA[:-1], {"label": LABEL[:-1]}),
        (DATA, {"label": LABEL + 1}),
        (DATA, {"label": None}),
        (np.column_stack([DATA, LABEL]), {"label": None}),
        (DATA, {"weight": np.ones(len(DATA))}),
        (DATA, {"weight": np.ones(len(DATA)) / 2}),
        (DATA, {"split": np.arange(len(DATA)) % 2}),
    ],
)
def test_any_change_shows(data: Any, options: Any) -> None:
    assert printed(data, **options) != printed()
    assert printed(data, **options)[:4] == printed()[:4], "it is the same party's"


@pytest.mark.parametrize("bit", range(64))
def test_so_does_any_bit_of_a_value_alone(bit: int) -> None:
    """Values are added up by multipliers, in which the last bit of a number or its sign might be lost."""
    block = Block(0, DATA[:9].copy())
    before = _block_digest(b"secret", block)
    block.values.view(np.uint64)[4, 1] ^= np.uint64(1 << bit)
    assert _block_digest(b"secret", block) != before


@pytest.mark.parametrize("change", [lambda x: -x, lambda x: 2 * x, lambda x: x[::-1], lambda x: np.roll(x, 1, axis=0)])
def test_so_does_a_change_of_many_values_at_once(change: Any) -> None:
    """Of signs or exponents alone, say: small whole numbers have few other bits."""
    whole = np.arange(1.0, 9.0)[:, np.newaxis]
    assert _block_digest(b"secret", Block(0, change(whole))) != _block_digest(b"secret", Block(0, whole))


def test_who_lacks_the_key_does_not_know_by_what_values_are_added_up() -> None:
    """By known multipliers other values of the same sums can be found."""
    block = Block(0, DATA[:9].copy())
    assert _block_digest(b"one key", block) != _block_digest(b"another", block)


def test_so_does_a_change_of_names_or_of_keys() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0], "z": [1.0, 3.0]})
    frames = [frame, frame.assign(id=["b", "a"]), frame.rename(columns={"x": "y"})]
    found = {printed(each, label="z", key="id") for each in frames} | {printed(frame[["x", "z"]], label="z")}
    assert len(found) == 4


def test_who_lacks_the_secret_cannot_compute_it() -> None:
    """Nor try values until one fits: two parties with one table have two, and no public name or pin is in it."""
    table, secret = cn.Party("bank", DATA).table, os.urandom(32)
    identity = PinnedIdentity("bank", secret, {"bank": signing_key(secret)}, os.urandom)
    found = {fingerprint(PartyData(table, identity)) for _ in range(2)}
    found.add(fingerprint(PartyData(table, identity, memory=KeptHere([key_here("bank")]))))
    assert len(found) == len({each[:4] for each in found}) == 3


def test_the_secret_outlives_the_process_and_the_identity_and_is_not_shown(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        memory = KeptInFile(tmp_path / "memory.notes")
        found.append(printed(memory=memory))  # with another identity each time
        memory.close()
    assert found[0] == found[1] != printed()
    assert (tmp_path / "memory.notes").stat().st_mode & 0o077 == 0
    (key,) = memory.notes()
    assert repr(key) == "TableKey(not shown)"


def test_the_table_is_read_once_and_not_before_a_job_opens() -> None:
    read = []

    class Watched:
        def __init__(self, table: Table) -> None:
            self._table = table

        def __getattr__(self, name: str) -> Any:
            read.extend([name] if name == "map" else [])
            return getattr(self._table, name)

    people = identities_here(["bank"], os.urandom)
    data = PartyData(Watched(cn.Party("bank", DATA).table), people["bank"])
    assert read == []
    assert fingerprint(data) == fingerprint(data)
    assert read == ["map"]
    federation = cn.Federation(cn.split_columns(DATA[:50], LABEL[:50], [2, 1]))
    kept = [session._data._kept for session in parties_of(federation)._parties.values()]
    assert not any(isinstance(known, Fingerprint) for each in kept for known in each), "nobody asked"
    federation.coreset(cn.Regression(), cn.UniformSampling(10))
    assert all(any(isinstance(known, Fingerprint) for known in each) for each in kept)


A, B, C = "00000000aa", "00000000bb", "00000001bb"  # two of one key, and one of another


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (Tables(9, {"bank": A, "shop": B}), "same"),
        (Tables(9, {"bank": A, "shop": A}), "changed"),
        (Tables(9, {"bank": A, "shop": C}), None),
        (Tables(9, {"bank": B, "shop": C}), "changed"),
        (Tables(9, {"bank": A, "shop": ""}), None),
        (Tables(9, {"bank": A}), None),
        (Tables(9, {"bank": A, "shop": B, "telephone": A}), None),
        (Tables(8, {"bank": A, "shop": B}), "new rows"),
        (Tables(9), None),
    ],
)
def test_tables_are_compared(now: Tables, expected: str | None) -> None:
    before = Tables(9, {"bank": A, "shop": B})
    assert before.compared(now) == expected
    assert Tables(9).compared(Tables(9)) is None
    if expected != "changed":
        before.require_unchanged(now)


def test_the_error_names_whose_table_changed() -> None:
    before = Tables(9, {"bank": A, "shop": B})
    with pytest.raises(cn.AlignmentError, match="The table of shop changed since the model was learned, with as many"):
        before.require_unchanged(Tables(9, {"bank": A, "shop": A}))
    with pytest.raises(
        cn.AlignmentError, match=r"The tables of bank, shop changed .* changed='allow' takes it as it is"
    ):
        before.require_unchanged(Tables(9, {"bank": B, "shop": A}))


def federation(data: Any, label: Any = None) -> cn.Federation:
    return cn.Federation(cn.split_columns(data, data.sum(axis=1) if label is None else label, [2, 1]))


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(2)])
def test_a_model_knows_its_table_again_also_from_a_file(tmp_path: Path, task: Any) -> None:
    data = DATA[:300]
    run = federation(data).fit(task, sampler=cn.ImportanceSampling(size=100), split=cn.HoldOut(0.2))
    again = cn.Run.load(run.save(tmp_path / "run"))
    assert again.tables == run.tables == again.model.learned_from_
    assert set(again.tables.fingerprints) == {"party1", "party2"}  # type: ignore[union-attr]
    alone = type(run.model).load(run.model.save(tmp_path / "model"))
    assert federation(data).evaluate(alone).table == "same"
    report: Any = federation(data).evaluate(again.model, split=run.split)
    assert report.table == "same"
    assert federation(data).certify(again).table == "same"
    other = data.copy()
    other[7, 0] += 1.0
    now = federation(other, data.sum(axis=1))
    with pytest.raises(cn.AlignmentError, match="The table of party1 changed since the model was learned"):
        now.evaluate(again.model)
    assert {entry.kind for entry in now.sent} == {"OpenJob", "JobAccepted"}, "it was noticed before anything was told"
    with pytest.raises(cn.AlignmentError, match="changed='allow'"):
        now.certify(again)
    assert {entry.kind for entry in now.sent} == {"OpenJob", "JobAccepted"}
    report = now.evaluate(again.model, changed="allow")
    assert report.table == "changed"
    assert "of a table that CHANGED since the run" in str(now.certify(again, changed="allow"))
    report = federation(DATA[:400]).evaluate(again.model)
    assert report.table == "new rows"
    with pytest.raises(cn.InputError, match="changed must be 'refuse' or 'allow', got 'maybe'"):
        now.evaluate(again.model, changed="maybe")  # type: ignore[arg-type]


def test_a_note_of_a_key_is_no_note_of_what_was_told() -> None:
    memory = KeptHere([TableKey(bytes(32))])
    assert printed(memory=memory) == printed(memory=KeptHere([TableKey(bytes(32))]))
    assert memory.notes() == {TableKey(bytes(32))}
