"""Parties that say what cannot be of the columns they prepare; and what the server shows of names."""

from typing import Any

import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.messages import Message
from colonnade.protocol.preparing import PreparedColumns
from colonnade.protocol.sheet import MAX_COLUMNS
from hostile.test_preparing import TASK, town, two_levels
from hostile.test_replies import Replacing

NAMES = ("job#1", "age", "age#1")
NOT_MADE = "columns that are not made of those on its card, or too many"
LIES: dict[str, tuple[dict[str, Any], str]] = {
    "a name twice": ({"feature_names": ("age", "age", "job#1")}, "a column's name twice"),
    "a million names": ({"feature_names": tuple(f"age#{i}" for i in range(MAX_COLUMNS + 1))}, NOT_MADE),
    "names of other columns": ({"feature_names": ("visits", *NAMES)}, NOT_MADE),
    "a line": ({"feature_names": ("age\nobjective 0", *NAMES)}, NOT_MADE),
    "what a terminal obeys": ({"feature_names": ("\x1b[2J", *NAMES)}, NOT_MADE),
    "a megabyte": ({"feature_names": ("x" * 1_000_000, *NAMES)}, NOT_MADE),
    "levels of other columns": ({"levels": ("job=clerk",)}, "a column's name twice, or levels of other columns"),
    "a level twice": ({"levels": ("a", "a", "b")}, "a column's name twice"),
    "no name": ({"name": ""}, "a preparation without a name"),
    "a name that is none": ({"name": "../../x" + "0" * 25}, "a preparation without a name"),
    "digits of another script": ({"name": "\u0660" * 32}, "a preparation without a name"),
    "a name in capitals": ({"name": "A" * 32}, "a preparation without a name"),
}


def lying(**changes: Any) -> cn.Federation:
    def change(reply: Message) -> Message:
        return replace(reply, **changes) if isinstance(reply, PreparedColumns) else reply

    return cn.Federation(town(table=two_levels()), transport=Replacing("bank", change))


@pytest.mark.parametrize("lie", LIES)
def test_what_columns_cannot_be_called_is_laid_to_the_party(lie: str) -> None:
    changes, why = LIES[lie]
    with pytest.raises(cn.RemoteProtocolError, match=rf"'bank' sent a PreparedColumns with {why}") as caught:
        lying(**changes).fit(TASK, sampler=cn.AllRows())
    assert caught.value.party == "bank"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("changes", [{"feature_names": NAMES[:2]}, {"name": "0" * 32}], ids=["fewer", "another's name"])
def test_what_may_be_is_contradicted_by_the_party_itself(changes: dict[str, Any]) -> None:
    with pytest.raises(cn.ColonnadeError, match="Party 'bank' did not answer OpenJob"):
        lying(**changes).fit(TASK, sampler=cn.AllRows())


def test_levels_are_shown_in_a_line_each() -> None:
    """A party may call its levels what it likes; who prints them sees neither other lines nor colours."""
    levels = ("job=x\n(intercept)  99", "\x1b[31mage", "x" * 1_000_000)
    model = lying(levels=levels).fit(TASK, sampler=cn.AllRows()).model
    assert model.feature_names_in_[:3] == levels
    *lines, compared = model.table().splitlines()
    assert compared.startswith("Levels compare to job=")
    # The longest takes three lines at most, and none begins as one of ours does.
    assert len(lines) <= 2 + len(model.feature_names_in_) + 2
    assert sum(line.startswith("(intercept)") for line in lines) == 1
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in model.table()


def test_levels_that_are_never_told_are_not_told_by_tell_levels() -> None:
    """The owner says one thing in [prepare] and another in [policy]: what is kept, is kept."""
    parties = town(table=two_levels(), tell_levels=True)
    kept = cn.Policy(level="open", never=["levels"])
    table = two_levels()
    rules = cn.Prepare({"job": cn.Category(), "age": cn.Number(missing="mean")}, tell_levels=True)
    told = cn.Federation(parties).fit(TASK, sampler=cn.AllRows()).model
    assert "job=driver" in told.feature_names_in_
    federation = cn.Federation([cn.Party("bank", table, prepare=rules, policy=kept), *parties[1:]])
    with pytest.raises(cn.PolicyRefusedError, match="never reveals levels, which a PreparedColumns would"):
        federation.fit(TASK, sampler=cn.AllRows())
    assert "levels" not in {told for entry in federation.ledger for told in entry.reveals}
