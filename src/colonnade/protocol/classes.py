"""What a classification asks before anything else: which classes the label has. Only the label party is asked.

They are those of its whole table, whatever rows a job holds out: no choice of rows tells which have a rare class.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from colonnade.contracts import Agreed, Roster, Script, Table
from colonnade.errors import InputError, PolicyRefusedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.blocks import Block
from colonnade.kernels.classes import MOST_CLASSES, distinct_values
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_floats
from colonnade.protocol import checks
from colonnade.protocol.session import GREETED, Handler, PartyData, PartyState
from colonnade.routes import END, Ask, Route

ClassName: TypeAlias = str | int | float
MOST_CHARACTERS = 200


class Classes(Message, frozen=True):
    """The label's values, ascending, and what they are called where they are text.

    Where rows are drawn by class, `n_told` says of how many the draw, their scores and weights tell it.
    """

    phase: ClassVar[str] = "framing"

    values: Annotated[Floats, Reveals.LEVELS]
    names: Annotated[tuple[str, ...] | None, Reveals.LEVELS]
    n_told: Annotated[int | None, Reveals.LABELS]

    def units(self) -> int:
        """Count the classes; what tells those of rows is counted where it is sent."""
        return len(self.values)

    def numbers_told(self, units: int) -> dict[Reveals, int]:
        """Count a class a row that is drawn."""
        told = super().numbers_told(units)
        told[Reveals.LEVELS] = len(self.values)
        return told if self.n_told is None else {**told, Reveals.LABELS: self.n_told}


class AskClasses(Message, frozen=True):
    """Tell which classes the label has. So many rows will be drawn by scores that tell classes; 0 is none."""

    phase: ClassVar[str] = "framing"
    reply: ClassVar[type[Message]] = Classes

    n_told: Annotated[int, Reveals.NOTHING]


def agree_on_classes(roster: Roster, n_told: int) -> Script[tuple[ClassName, ...]]:
    """Learn the classes of the label party's label, in their natural order."""
    party = roster.label_party or ""
    inbox = yield {party: AskClasses(n_told)}
    reply = checks.replies(inbox, Classes)[party]
    checks.in_range(party, reply, reply.values)
    if reply.values.ndim != 1 or not 1 <= len(reply.values) <= MOST_CLASSES or np.any(np.diff(reply.values) <= 0):
        raise checks.wrong(party, reply, f"classes that do not ascend, or are not 1 to {MOST_CLASSES}")
    if (reply.n_told or 0) != n_told:
        raise checks.wrong(party, reply, "another number of rows than it was asked for")
    if (reply.names is not None) != roster.cards[roster.names.index(party)].label_is_text:
        raise checks.wrong(party, reply, "text for a label of numbers, or numbers for one of text")
    if reply.names is not None:
        _check_names(party, reply, reply.names)
    return class_names(reply.values, reply.names)


def classes_route(agreed: Agreed, n_told: int) -> Route:
    """Say what a party is asked by `agree_on_classes`."""
    return Ask(AskClasses, n_told=n_told) if agreed.party == agreed.roster.label_party else END


def label_values(classes: Sequence[ClassName]) -> Floats:
    """Give the numbers that stand for classes where labels travel: themselves, or the places of text in its order."""
    if any(isinstance(each, str) for each in classes):
        places = {name: place for place, name in enumerate(sorted(map(str, classes)))}
        return np.array([places[str(each)] for each in classes], dtype=np.float64)
    return np.array(classes, dtype=np.float64)


def label_classes(table: Table) -> Floats:
    """Find the label's values, ascending, in a table whose label has classes."""
    if (found := distinct_values(table.labels, -1)) is None:
        raise InputError(
            f"its label {table.label_name!r} has more than {MOST_CLASSES} different values, which are no classes. Name "
            "another label, or learn a Regression."
        )
    return found


def class_names(values: Floats, names: Sequence[str] | None) -> tuple[ClassName, ...]:
    """Call values as people do: whole numbers without a point, and places of text by it."""
    if names is not None:
        return tuple(names[int(value)] for value in values)
    return tuple(int(value) if value.is_integer() else value for value in values.tolist())


def _check_names(party: str, reply: Classes, names: tuple[str, ...]) -> None:
    if list(names) != sorted(set(names)) or not np.array_equal(reply.values, np.arange(len(names))):
        raise checks.wrong(party, reply, "names of classes that are not in their order, or for other values")
    if max(map(len, names)) > MOST_CHARACTERS:
        raise checks.wrong(party, reply, f"a class of more than {MOST_CHARACTERS} characters")


def _answer(state: PartyState, request: AskClasses, data: PartyData) -> tuple[PartyState, Message]:
    if request.n_told < 0:
        raise checks.wrong(SERVER, request, f"{request.n_told} rows")
    table = data.seen(None).table
    if table.label_name is None:
        raise checks.wrong(SERVER, request, "a question for a label that this party does not have")
    values = data.seen(None).once(label_classes)
    _check_common(table, data)
    return state, Classes(sendable_floats(values), table.label_levels, request.n_told or None)


def class_counts(table: Table) -> Rows:
    """Count the rows of each of the label's values, in the order of `label_classes`."""
    values = label_classes(table)
    return reduce(np.add, table.labels.map(partial(_counts, values)))


def _counts(values: Floats, block: Block) -> Rows:
    return np.bincount(np.searchsorted(values, block.values[:, -1]), minlength=len(values))


def _check_common(table: Table, data: PartyData) -> None:
    """Require of every class as many rows as the owner asks of whatever is told of many."""
    least = data.policy.least_rows
    if least == 1:
        return
    if data.seen(None).once(class_counts).min() < least:
        raise PolicyRefusedError(
            f"its owner's policy asks for {least} rows at least of whatever is told; a class of the label "
            f"{table.label_name!r} has fewer. Put rare classes together, or leave out their rows.",
            party=data.name,
        )


HANDLERS = (Handler(AskClasses, _answer, after=None, then=GREETED),)
