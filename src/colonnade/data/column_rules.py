"""Which columns of a table its owner lets in: those of an allow-list, if there is one, and none that never enters."""

from collections.abc import Mapping, Sequence

from colonnade.errors import InputError
from colonnade.options import there_is_no
from colonnade.protocol.policy import Policy


def allowed_columns(party: str, names: Sequence[str], roles: Mapping[str, str], policy: Policy) -> list[str]:
    """Give the names, in order, that the owner's policy lets in; columns that have a role must be among them."""
    _check_named(party, names, policy)
    allowed = [name for name in names if may_enter(name, policy)]
    for name, role in roles.items():
        if name not in allowed:
            raise InputError(_kept_out(party, role, name, policy))
    return allowed


def no_such_column(party: str, name: str, names: Sequence[str], *, role: str = "", named_by: str = "") -> str:
    """Say that there is no such column, which there are, and which may have been meant."""
    what = f"column {name!r}, which {named_by} of its owner's policy names" if named_by else f"{role} column {name!r}"
    return f"Party {party!r}: {there_is_no(what, name, names)}"


def may_enter(name: str, policy: Policy) -> bool:
    """Whether the owner's policy lets a column in."""
    return name not in policy.never_columns and (policy.columns is None or name in policy.columns)


def _check_named(party: str, names: Sequence[str], policy: Policy) -> None:
    """Require that each column of a rule is there: a slip would let in what was to stay out, or the reverse."""
    for rule, named in (("columns", policy.columns or ()), ("never_columns", policy.never_columns)):
        if missing := sorted(set(named).difference(names)):
            raise InputError(no_such_column(party, missing[0], names, named_by=rule))


def _kept_out(party: str, role: str, name: str, policy: Policy) -> str:
    rule, cure = ("never_columns", "take it out of") if name in policy.never_columns else ("columns", "add it to")
    return (
        f"Party {party!r}: the {role} column {name!r} is not allowed by {rule} of its owner's policy. Leave out "
        f"{role}={name!r}, or {cure} {rule}."
    )
