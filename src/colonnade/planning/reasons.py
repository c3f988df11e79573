"""Why a plan is what it is, in one sentence: by what the planner compared, and by what was left out beforehand."""

import math
from collections.abc import Iterator, Sequence

from colonnade.planning.choosing import MOST_HEAVY, Arm, Found, fewest_meeting
from colonnade.planning.records import percent
from colonnade.planning.terms import Terms
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling, UniformSampling

HEADS: dict[type[AnySampler], str] = {
    UniformSampling: "Rows are drawn evenly",
    ImportanceSampling: "Rows are drawn by scores",
    AllRows: "All rows are sent",
}
OTHERS: dict[type[AnySampler], str] = {
    UniformSampling: "even draws",
    ImportanceSampling: "draws by scores",
    AllRows: "all rows",
}


def reason(
    arms: Sequence[Arm], found: Found, terms: Terms, left: float | None, target: float | None, *, is_clear: bool
) -> str:
    """Say why of these arms one was chosen, for so many bytes or for a target; amounts only where they are clear."""
    head = HEADS[type(found.way.arm.kind)] + (", as they are" if found.way.arm.step is None else "")
    parts = [*_compared(found, target, is_clear=is_clear), *_missing(arms, found, terms, left, target), *_kept(terms)]
    return f"{head}: {'; '.join(parts)}."


def _compared(found: Found, target: float | None, *, is_clear: bool) -> Iterator[str]:
    """Tell what the best of other samplers would do, by the numbers that decided."""
    own = found.beside.get(found.way.arm.kind)
    others = {kind: amount for kind, amount in found.beside.items() if kind != found.way.arm.kind}
    if own is None:
        yield "nothing sends fewer bytes, and the budget holds no more"
    elif not is_clear:
        yield "by what the pilot shows, that does best" + _where([OTHERS[type(kind)] for kind in others], "do worse")
    elif target is not None:
        rest = [f"{OTHERS[type(kind)]} would take {amount:,.0f}" for kind, amount in others.items()]
        yield f"for {percent(target)} that takes {own:,.0f} bytes after the pilot{_where(rest)}"
    elif found.way.arm.step is None and isinstance(found.way.arm.kind, AllRows):
        yield "they fit, and nothing is lost"
    else:
        rest = [f"{OTHERS[type(kind)]} would {_lose(amount)}" for kind, amount in others.items()]
        yield f"that is expected to lose {percent(own)}{_where(rest)}"
    if not found.way.is_offered:
        yield f"rows that matter much may be missed ({_heavy(found.way.arm, found.way.size)}), but no other way is left"


def _lose(amount: float) -> str:
    return f"lose {percent(amount)}" if math.isfinite(amount) else "be too few"


def _where(others: Sequence[str], what: str = "") -> str:
    return f", where {' and '.join(others)} {what}".rstrip() if others else ""


def _kept(terms: Terms) -> Iterator[str]:
    """Tell what else policies leave out."""
    if "solvers" in terms.limited_by:
        yield f"the policy of {terms.limited_by['solvers']!r} lets rows be sent by CompactCentral only"
    if "least" in terms.limited_by:
        yield f"the policy of {terms.limited_by['least']!r} asks for {terms.choice.least:,} rows or more"


def _missing(
    arms: Sequence[Arm], found: Found, terms: Terms, left: float | None, target: float | None
) -> Iterator[str]:
    """Tell why samplers were not compared."""
    for kind, name in OTHERS.items():
        if any(isinstance(each, kind) for each in (found.way.arm.kind, *found.beside)):
            continue
        there = [arm for arm in arms if isinstance(arm.kind, kind)]
        yield _why_missing(name, kind, there, terms, left, target)


def _why_missing(
    name: str, kind: type[AnySampler], arms: Sequence[Arm], terms: Terms, left: float | None, target: float | None
) -> str:
    if not arms and kind is ImportanceSampling and terms.choice.evenly:
        return f"the policy of {terms.limited_by['evenly']!r} allows no {name}"
    if not arms and kind is AllRows and "most" in terms.limited_by:
        return f"the policy of {terms.limited_by['most']!r} allows {terms.choice.most:,} rows at most"
    if not arms and kind is AllRows:  # which take no more rounds than an even draw
        return f"{name} are more than the {terms.choice.most:,} that fit one message"
    if not arms:
        return f"{name} take more rounds than are allowed"
    finest, *_, coarsest = sorted(arms, key=lambda arm: arm.step or 0.0)
    size = coarsest.within(left) if left is not None else fewest_meeting(finest, target or 0.0)
    if size is None:
        return f"{name} do not fit" if left is not None else f"{name} do not meet the target"
    return f"{name} could miss rows that matter too much ({_heavy(coarsest, size)})"


def _heavy(arm: Arm, size: int) -> str:
    return f"weight times leverage {arm.heaviest(size):.2g}, where {MOST_HEAVY} is the most"
