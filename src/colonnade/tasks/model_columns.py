"""What a model knows of its columns: who holds them, what they are called, and whether a table has them."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.contracts import Model, PartyCard, Roster
from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.ledger import in_a_line
from colonnade.options import listed
from colonnade.preparation.preparation import Preparation


def check_parts(parts: Mapping[str, int], n_features: int) -> None:
    """Require that the parties hold all features between them, where a model names its parties."""
    if parts and (min(parts.values()) < 0 or sum(parts.values()) != n_features):
        raise InputError(
            f"A model's parts must add up to its {n_features} features, got {dict(parts)}. Check where it comes from."
        )


def columns_of(parts: Mapping[str, int], party: str) -> slice:
    """Say where a party's features stand among all of them; `parts` counts each party's, in their order."""
    if party not in parts:
        known = (
            f"its parties are {', '.join(parts)}. Pass one of these" if parts else "it names no parties. Fit it again"
        )
        raise InputError(f"There is no party {party!r} in this model: {known}.")
    names = list(parts)
    start = sum(parts[name] for name in names[: names.index(party)])
    return slice(start, start + parts[party])


def check_columns(model: Model[Any], roster: Roster) -> None:
    """Require that a model was made of these parties' columns, in this order."""
    ours, theirs = roster.feature_names, model.feature_names_in_
    if ours == theirs:
        return
    parts: Mapping[str, int] = getattr(model, "parts_", {})
    same = tuple(parts) == roster.names
    if not same and set(parts) == set(roster.names):
        raise InputError(
            f"The model has its parties in the order {', '.join(parts)}; these are in the order "
            f"{', '.join(roster.names)}. Name them in the model's order."
        )
    for party, here in roster.parts.items():
        # The last may lack some that nobody else has.
        here = slice(here.start, None) if party == roster.names[-1] else here
        # By the model's own parts, if it can be: columns that one party lacks are not missed at the next.
        expected, found = theirs[columns_of(parts, party) if same else here], ours[here]
        if expected != found:
            raise InputError(f"The model does not fit party {party!r}: {_first_difference(expected, found)}")


def _first_difference(expected: tuple[str, ...], found: tuple[str, ...]) -> str:
    name, other = next(pair for pair in zip_longest(expected, found) if pair[0] != pair[1])
    differ = (
        f"where the model has {'no more columns' if name is None else repr(name)}, the party has "
        f"{'no more' if other is None else repr(other)}"
    )
    if sorted(expected) == sorted(found):
        return f"{differ}. Put its columns in the model's order: {', '.join(expected)}."
    return f"{differ}. Use the columns it was learned from, or learn a model of these."


def matrix(X: npt.ArrayLike, names: tuple[str, ...]) -> Floats:
    """Require finite rows, shape (n_rows, n_features), with a model's columns; names are compared where X has some."""
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        # Without NumPy's own words, which quote the value.
        raise InputError("These rows are not numbers in lines of one length. Pass a table or 2-D array.") from error
    if rows.ndim != 2 or rows.shape[1] != len(names):
        raise InputError(
            f"The model has {len(names)} features, got rows of shape {rows.shape}. Pass (n_rows, {len(names)})."
        )
    found = _column_names(X)
    if found is not None and found != names:
        differs = next(i for i, name in enumerate(names) if found[i] != name)
        raise InputError(
            f"Column {differs} of the table is {found[differs]!r}, that of the model {names[differs]!r}. "
            "Pass the model's columns in its order, or a plain array."
        )
    if np.ma.is_masked(X) or not np.isfinite(rows).all():
        raise InputError("These rows have gaps or infinities. Fill them or leave the rows out.")
    return rows


def _column_names(X: object) -> tuple[str, ...] | None:
    found: Any = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow's, then pandas' and polars'
    return None if found is None else tuple(found)


def given_names(parts: Mapping[str, int], names: tuple[str, ...]) -> tuple[str, ...] | None:
    """Give the names of columns; None where parties made all of them up for plain arrays: party_0, party_1, and so on.

    scikit-learn then expects plain arrays too.
    """
    made_up = tuple(f"{party}_{i}" for party, width in parts.items() for i in range(width))
    return None if names == made_up else names


def check_scale(scale: Floats | None, n_features: int) -> None:
    """Require units that distances or penalties can be measured in, where there are some."""
    if scale is not None and not (scale.shape == (n_features,) and np.isfinite(scale).all() and (scale > 0).all()):
        raise InputError("A model's scale needs one positive number a feature. Check where it comes from.")


def widths(roster: Roster) -> dict[str, int]:
    """Count each party's features."""
    return {card.name: card.n_features for card in roster.cards}


def own_names(model: Any) -> tuple[str, ...]:
    """Name columns as their parties do, where a model has what these learned of them: in one process."""
    names, tables = list(model.feature_names_in_), model.learned_from_
    for party, fitted in ({} if tables is None else tables.preparations).items():
        here, preparation = columns_of(model.parts_, party), Preparation.from_json(fitted.encode())
        made = zip(names[here], preparation.names, preparation.own_names, strict=True)
        # Where parties use one name, the party stands before it; and levels that were told are there already.
        names[here] = [name if name.endswith(own) else name.removesuffix(told) + own for name, told, own in made]
    return tuple(names)


def preparation_of(model: Any, party: str) -> Preparation | None:
    """Read how a party's columns were made, where a model has that; it must make the columns that the model has."""
    fitted = None if model.learned_from_ is None else model.learned_from_.preparations.get(party)
    if fitted is None:
        return None
    preparation = Preparation.from_json(fitted.encode())
    names, told = model.feature_names_in_[columns_of(model.parts_, party)], preparation.names
    # Levels may have been told, and where parties use one name, the party stands before it.
    made = list(zip_longest(names, told, preparation.own_names))
    if not all(name in (one, own, f"{party}.{one}", f"{party}.{own}") for name, one, own in made):
        raise InputError(
            f"The model's preparation of columns of {party!r} makes other columns than the model has. Take the model's "
            "files as they were written, or learn it again."
        )
    return preparation


def references(model: Any) -> str:
    """Say which levels have no column, where a model has what its parties learned of these: a line below its table."""
    tables = model.learned_from_
    kept = () if tables is None else tables.preparations.values()
    found = [name for fitted in kept for name in Preparation.from_json(fitted.encode()).references]
    return f"\nLevels compare to {listed([in_a_line(name) for name in found])}." if found else ""


def roster_of(model: Model[Any], roster: Roster) -> Roster:
    """Give the parties their columns as a model has them that was learned from columns they prepared."""
    prepared: Mapping[str, str] = getattr(getattr(model, "learned_from_", None), "prepared", {})
    return replace(roster, cards=tuple(_card_of(model, card, prepared.get(card.name)) for card in roster.cards))


def _card_of(model: Any, card: PartyCard, prepared: str | None) -> PartyCard:
    if card.prepared is None and prepared is None:
        return card
    if card.prepared is None or prepared is None:
        had, has = ("as they came", "prepares them") if prepared is None else ("prepared", "has them as they came")
        raise InputError(
            f"The model was learned from columns of {card.name!r} {had}, and now it {has}. Use the party as it was "
            "then, or learn the model again."
        )
    return replace(card, feature_names=model.feature_names_in_[columns_of(model.parts_, card.name)], prepared=prepared)
