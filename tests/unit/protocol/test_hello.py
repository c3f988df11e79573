"""The hello round, fed by hand."""

from typing import Any

import pytest
from msgspec.structs import replace

from colonnade.contracts import Roster
from colonnade.errors import AlignmentError, InputError, RemoteProtocolError, WireVersionError
from colonnade.protocol.hello import MAX_ROWS, WIRE_VERSION, Card, hello


def greet(*cards: Card) -> Roster:
    names = [f"p{i}" for i in range(len(cards))]
    script = hello(names)
    next(script)
    with pytest.raises(StopIteration) as end:
        script.send(dict(zip(names, cards, strict=True)))
    roster = end.value.value
    assert isinstance(roster, Roster)
    return roster


def card(
    n_rows: int = 5,
    features: tuple[str, ...] = ("x",),
    label: str | None = None,
    digest: bytes | None = None,
    version: int = WIRE_VERSION,
    *,
    weights: bool = False,
) -> Card:
    return Card(version, n_rows, features, label, digest, weights, False, False)


def test_a_roster_knows_where_each_partys_columns_are() -> None:
    roster = greet(card(features=("a", "b")), card(features=(), label="y"), card(features=("c",)))
    assert roster.names == ("p0", "p1", "p2")
    assert roster.label_party == "p1"
    assert roster.parts == {"p0": slice(0, 2), "p1": slice(2, 2), "p2": slice(2, 3)}


@pytest.mark.parametrize(
    ("features", "names"),
    [
        ((("a",), ("b",)), ("a", "b")),
        ((("a", "x"), ("x",)), ("a", "p0.x", "p1.x")),
        ((("p1.x", "x"), ("x",)), ("p0.p1.x", "p0.x", "p1.x")),
    ],
)
def test_features_keep_their_names_unless_they_clash(features: Any, names: tuple[str, ...]) -> None:
    assert greet(*(card(features=mine) for mine in features)).feature_names == names


@pytest.mark.parametrize("bad", [card(n_rows=0), card(n_rows=-4), card(n_rows=MAX_ROWS + 1), card(features=("x", "x"))])
def test_hostile_cards(bad: Card) -> None:
    with pytest.raises(RemoteProtocolError, match="'p1' sent a Card with a row count outside"):
        greet(card(), bad)


def test_text_without_a_label() -> None:
    with pytest.raises(RemoteProtocolError, match="'p1' sent a Card with a label of text, and no label"):
        greet(card(), replace(card(), label_is_text=True))


def test_other_versions_counts_keys_and_labels() -> None:
    with pytest.raises(WireVersionError, match=f"'p1' speaks wire version 9, this side {WIRE_VERSION}"):
        greet(card(), card(version=9))
    with pytest.raises(AlignmentError, match="p0 5, p1 6"):
        greet(card(), card(n_rows=6))
    with pytest.raises(AlignmentError, match="key columns of p0, p2 differ"):
        greet(card(digest=b"1"), card(), card(digest=b"2"))
    with pytest.raises(InputError, match="Two parties hold a label: p0 'y', p1 'z'"):
        greet(card(label="y"), card(label="z"))
