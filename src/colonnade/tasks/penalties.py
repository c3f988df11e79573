"""Penalties of linear tasks: l2 and l1 a row, of which one may be chosen by cross-validation."""

from typing import Any, Literal, TypeAlias

import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import Roster, Scaling
from colonnade.errors import InputError, UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.options import flag, non_negative_number

Penalty: TypeAlias = float | Literal["cv"]


def check_options(task: Any) -> None:
    """Require penalties, of which at most one is to be chosen, and flags; and make plain numbers of them."""
    for name in ("l2", "l1"):
        force_setattr(task, name, _penalty(name, getattr(task, name)))
    if task.l2 == "cv" and task.l1 == "cv":
        raise InputError(
            'Cross-validation chooses one penalty, got l2="cv" and l1="cv". Make one a number: l1="cv" with l2=0 '
            "is the lasso; for an elastic net try a few values of l2."
        )
    for name in ("fit_intercept", "standardize"):
        force_setattr(task, name, flag(name, getattr(task, name)))


def check_columns(task: Any, roster: Roster) -> None:
    """Require a label and something to predict it from."""
    name = type(task).__name__
    if roster.label_party is None:
        raise InputError(
            f"{name} needs a label, and none of {', '.join(roster.names)} holds one. "
            "Name it at one party: Party(name, data, label='column')."
        )
    if not roster.feature_names:
        raise InputError(f"{name} needs at least one feature column. Give a party some columns.")


def scaling_of(task: Any) -> Scaling:
    """Say in which units columns enter: where there is no intercept to take up means, they stay."""
    if not task.standardize:
        return "own"
    return "standard" if task.fit_intercept else "scaled"


def both_numbers(l2: Penalty, l1: Penalty, able: str) -> tuple[float, float]:
    """Give l2 and l1, both numbers; `able` names the solvers that can choose one."""
    if isinstance(l2, str) or isinstance(l1, str):
        raise UnsupportedError(f'Only {able} can choose a penalty by "cv". Use one of them, or pass numbers.')
    return l2, l1


def varied(l2: Penalty, l1: Penalty) -> tuple[Literal["l2", "l1"] | None, float]:
    """Say which penalty is to be chosen, if one is, and what the other is."""
    if isinstance(l2, str) and not isinstance(l1, str):
        return "l2", l1
    if isinstance(l1, str) and not isinstance(l2, str):
        return "l1", l2
    return None, 0.0


def penalty_of(coef: Floats, l2: float, l1: float) -> float:
    """Compute l2 |theta|^2 + l1 |theta|_1."""
    return l2 * float(coef.ravel() @ coef.ravel()) + l1 * float(np.abs(coef).sum())


def _penalty(name: str, value: Any) -> Penalty:
    if isinstance(value, str) and value == "cv":
        return "cv"
    return non_negative_number(name, value, example=f'Pass for instance {name}=0.1, or "cv" to let it be chosen.')
