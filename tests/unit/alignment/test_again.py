"""Aligned again: positions change, and nothing that a party remembers is dodged by it."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import colonnade as cn
from alignment_trial import frames, parties
from colonnade.alignment import check_mode, shared_secret
from colonnade.alignment.meeting import KeyCard, have_alignment, meet
from colonnade.data.keys import read_keys
from colonnade.protocol.sheet import SheetParty
from colonnade.signing import digest
from harness import parties_of


@pytest.fixture
def fresh_orders(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every alignment have an order of its own, as between machines."""
    dealt = shared_secret._dealt

    def anew(state: Any, data: Any) -> tuple[bytes, bytes]:
        return dealt(state, data)[0], digest(b"order", state.run_nonce)

    with monkeypatch.context() as changed:
        changed.setattr(shared_secret, "_dealt", anew)
        yield


def federation(level: Any) -> cn.Federation:
    tables = frames([range(400)] * 3)
    for number, table in enumerate(tables.values()):
        rng = np.random.default_rng(number)
        table[[f"more{column}" for column in range(3)]] = rng.normal(size=(400, 3))
    return cn.Federation(parties(tables, policy=cn.Policy(level=level)), align="aided")


def aligned_again(found: cn.Federation) -> None:
    runtime = found._runtime
    runtime._aligned(found.roster.names, "aided", again=True)
    sessions = parties_of(found)._parties
    alignments = [session._data.table.alignment for session in sessions.values()]
    (fingerprint,) = {each.fingerprint for each in alignments if each is not None}
    runtime.roster = type(runtime.roster)(runtime.roster.cards, fingerprint.hex())


@pytest.mark.usefixtures("fresh_orders")
def test_one_split_under_many_alignments_is_many_ways_to_score() -> None:
    """Each holds out other rows: by enough of them, totals would tell rows."""
    found = federation("strict")

    def draw_again_and_again() -> None:
        for _ in range(12):
            found.coreset(cn.Regression(), cn.ImportanceSampling(size=60, scores="secure"), split=cn.HoldOut(0.2))
            aligned_again(found)

    with pytest.raises(cn.PolicyRefusedError, match="splits"):
        draw_again_and_again()


@pytest.mark.usefixtures("fresh_orders")
def test_the_same_rows_aligned_again_are_one_way_to_score() -> None:
    found = federation("strict")
    for _ in range(12):
        found.coreset(cn.Regression(), cn.ImportanceSampling(size=60, scores="secure"))
        aligned_again(found)


@pytest.mark.usefixtures("fresh_orders")
def test_a_party_knows_a_coreset_under_its_alignment_only() -> None:
    found = federation("usual")
    coreset = found.coreset(cn.Regression(), cn.ImportanceSampling(size=60, scores="plain")).coreset
    found.fit(cn.Regression(), coreset=coreset)
    aligned_again(found)
    with pytest.raises(cn.AlignmentError, match="goes by another alignment"):
        found.fit(cn.Regression(), coreset=coreset)
    lie = cn.Coreset(coreset.rows, coreset.weights, coreset.n_rows, coreset.total_weight)
    with pytest.raises(cn.PolicyRefusedError, match="uses only coresets again that it agreed on"):
        found.fit(cn.Regression(), coreset=lie)


def test_an_alignment_is_what_its_mode_says() -> None:
    """Keys that were told in the clear are not matched on a curve because a file says so."""
    card = KeyCard(SheetParty("bank", 2), 10, 10, bytes(16), "clear")
    assert have_alignment({"bank": card, "shop": card}, "clear")
    with pytest.raises(cn.AlignmentError, match="matched by 'clear', and"):
        have_alignment({"bank": card, "shop": card}, "curve")


@pytest.mark.parametrize(
    "lie",
    [{"mode": "x" * 10_000}, {"mode": None}, {"alignment": None}, {"n_rows": 1 << 70}, {"n_keys": 0}, {"n_keys": 11}],
)
def test_a_card_that_no_party_has_is_named(lie: dict[str, Any]) -> None:
    card = KeyCard(SheetParty("shop", 2), 10, 10, bytes(16), "clear")
    script = meet(["bank", "shop"], again=False)
    next(script)
    honest = msgspec.structs.replace(card, party=SheetParty("bank", 2))
    with pytest.raises(cn.RemoteProtocolError, match="'shop' sent a KeyCard") as found:
        script.send({"bank": honest, "shop": msgspec.structs.replace(card, **lie)})
    assert len(str(found.value)) < 300


def test_repeated_keys_are_no_same_rows_in_the_same_order() -> None:
    """Kept keys may be equal where rows are not."""
    x = np.arange(200.0)
    left = pd.DataFrame({"id": [0, *range(199)], "x": x})
    right = pd.DataFrame({"id": [*range(199), 198], "y": 3 * x})
    both = [
        cn.Party("left", left, key="id", duplicates="first"),
        cn.Party("right", right, key="id", label="y", duplicates="first"),
    ]
    with pytest.raises(cn.AlignmentError, match="1 of its rows repeat keys"):
        cn.Federation(both)
    run = cn.Federation(both, align="aided").fit(cn.Regression(), sampler=cn.AllRows())
    assert run.model.coef_.shape == (1,)


@pytest.mark.parametrize("mode", [["curve"], None, 3, "sha256", "hash", "any"])
def test_no_such_way_to_align(mode: Any) -> None:
    with pytest.raises(cn.InputError, match="align="):
        check_mode(mode)


@pytest.mark.parametrize(
    "column",
    [pa.array([2**60], pa.timestamp("s")), pa.array([b"\xff\xfe"]).cast(pa.binary()).view(pa.string())],
)
def test_keys_that_arrow_cannot_read_are_named_and_not_shown(column: Any) -> None:
    with pytest.raises(cn.InputError, match="key column 'id'"):
        read_keys("bank", ["id"], pa.table({"id": column}), "error")
