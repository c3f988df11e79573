"""Penalties of linear tasks: l2 and l1 a row, of which one may be chosen by cross-validation."""

from typing import Literal

from colonnade.contracts import Roster
from colonnade.errors import InputError, UnsupportedError
from colonnade.options import Penalty


def nothing_to_learn(task: str, roster: Roster) -> InputError:
    """Build the error for parties without a label, or without anything to predict it from."""
    if roster.label_party is None:
        return InputError(
            f"{task} needs a label, and none of {', '.join(roster.names)} holds one. "
            "Name it at one party: Party(name, data, label='column')."
        )
    return InputError(f"{task} needs at least one feature column. Give a party some columns.")


def not_chosen(able: str) -> UnsupportedError:
    """Build the error where a penalty is to be chosen, which only the solvers that are `able` do."""
    return UnsupportedError(f'Only {able} can choose a penalty by "cv". Use one of them, or pass numbers.')


def varied(l2: Penalty, l1: Penalty) -> tuple[Literal["l2", "l1"] | None, float]:
    """Say which penalty is to be chosen, if one is, and what the other is."""
    if isinstance(l2, str) and not isinstance(l1, str):
        return "l2", l1
    if isinstance(l1, str) and not isinstance(l2, str):
        return "l1", l2
    return None, 0.0
