"""How an owner's policy judges a job by its sheet and its route, before anything else is answered."""

from typing import get_args

from colonnade.messages import Message, Reveals, disclosures
from colonnade.protocol.memory import CoresetNote, ModelNote
from colonnade.protocol.policy import ALWAYS, Policy
from colonnade.protocol.session import PartyData
from colonnade.protocol.sheet import JobSheet
from colonnade.routes import Route


def objection_to_job(sheet: JobSheet, route: Route, data: PartyData) -> str | None:
    """Say why the party takes no part in this job, or None."""
    policy, tasks, known_only = data.policy, data.policy.tasks, data.policy.known_only
    if sheet.model is not None and sheet.task is None:
        # The task of a model that is applied was judged when the party helped to learn it.
        tasks, known_only = None, known_only or tasks is not None
    return (
        _objection_to_kind("task", sheet.task, tasks)
        or _objection_to_kind("solver", sheet.solver, policy.solvers)
        or _objection_to_branches(sheet, policy.solvers)
        or _objection_to_phases(policy, route)
        or _objection_to_replies(policy, route, data)
        or _objection_to_numbers(policy, sheet)
        or (_objection_to_unknown(sheet, data) if known_only else None)
    )


def _objection_to_kind(what: str, options: dict[str, object] | None, allowed: frozenset[str] | None) -> str | None:
    if allowed is None or (options is None and what == "solver"):
        return None
    kind = None if options is None else options.get("kind")
    if kind in allowed:
        return None
    listed = ", ".join(sorted(allowed)) or "none"
    found = "a job that names none" if kind is None else f"{kind!r}"
    return f"its owner's policy allows the {what}s {listed}, not {found}"


def _objection_to_branches(sheet: JobSheet, allowed: frozenset[str] | None) -> str | None:
    solvers = () if sheet.branches is None else sheet.branches.solvers
    return next((why for kind in solvers if (why := _objection_to_kind("solver", {"kind": kind}, allowed))), None)


def _objection_to_phases(policy: Policy, route: Route) -> str | None:
    if policy.phases is None:
        return None
    phases = {ask.kind.phase for ask in route.asks()}
    if refused := sorted(phases.difference(ALWAYS, policy.phases)):
        return f"its owner's policy allows the phases {', '.join(sorted(policy.phases)) or 'none'}, not {refused[0]!r}"
    return None


def _objection_to_replies(policy: Policy, route: Route, data: PartyData) -> str | None:
    """Look at what every reply of the job is sure to reveal; what one may reveal is judged when it is made."""
    has_label = data.table.label_name is not None
    for ask in tuple(route.asks()):
        told = _always_told(ask.kind.reply) if ask.kind.reply is not None else set()
        kept = sorted(policy.never & (told if has_label else told - {Reveals.LABELS}))
        if kept and ask.kind.reply is not None:
            return f"its owner's policy never reveals {' or '.join(kept)}, which a {ask.kind.reply.__name__} would"
    return None


def _always_told(kind: type[Message]) -> set[Reveals]:
    optional = {field for field, hint in kind.__annotations__.items() if type(None) in get_args(get_args(hint)[0])}
    return {*kind.steered, *(reveals for field, reveals in disclosures(kind).items() if field not in optional)}


def _objection_to_numbers(policy: Policy, sheet: JobSheet) -> str | None:
    if len(sheet.parties) < policy.least_parties:
        return f"its owner's policy asks for {policy.least_parties} parties at least; this job has {len(sheet.parties)}"
    if policy.parameters_a_row is not None and sheet.learns and sheet.task is not None:
        size = sheet.size_of_coreset()
        parameters = sum(each.features for each in sheet.parties) * int(sheet.task.get("n_clusters", 1))
        if parameters > policy.parameters_a_row * size:
            return (
                f"its owner's policy allows {policy.parameters_a_row:g} parameters a row; {parameters:,} parameters "
                f"would be learned on {size:,} rows"
            )
    return None


def _objection_to_unknown(sheet: JobSheet, data: PartyData) -> str | None:
    """Look whether a coreset or a model that is used again is one that the party knows."""
    known = data.memory.notes()
    if sheet.coreset is not None and CoresetNote(sheet.coreset[0]) not in known:
        return f"its owner's policy uses only coresets again that it agreed on, not {sheet.coreset[0].hex()}"
    if sheet.model is not None:
        part = sheet.model[sheet.place(data.name)]
        if ModelNote(part) not in known and part.hex() not in data.policy.accepted:
            return (
                "its owner's policy applies only models that it helped to learn, or that the owner accepted; this "
                f"one's part has the digest {part.hex()}"
            )
    return None
