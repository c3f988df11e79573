"""How an owner's policy judges a job by its sheet and its route, before anything else is answered."""

import math
from collections.abc import Callable
from functools import cache
from typing import get_args

import msgspec

from colonnade.messages import Message, Reveals, disclosures
from colonnade.protocol.caps import Branches
from colonnade.protocol.memory import ModelNote
from colonnade.protocol.policy import ALWAYS, Policy, never_revealed, not_allowed
from colonnade.protocol.session import PartyData
from colonnade.protocol.sheet import JobSheet
from colonnade.protocol.weighing import coreset_digest, known_coresets
from colonnade.routes import Ask, Route

# Phases in which the label is looked at, beside other columns.
LEARNING = ("solving", "diagnosing")
SolverOf = Callable[[type[Message]], str | None]
Asks = tuple[Ask, ...]


def objection_to_job(solver_of: SolverOf, sheet: JobSheet, route: Route, data: PartyData) -> str | None:
    """Say why the party takes no part in this job, or None; each request belongs to a solver, or to none."""
    policy, tasks, known_only = data.policy, data.policy.tasks, data.policy.known_only
    if sheet.model is not None and sheet.task is None:
        # The task of a model that is applied was judged when the party helped to learn it.
        tasks, known_only = None, known_only or tasks is not None
    asks = tuple(route.asks())
    if sheet.align is not None:
        return _objection_to_alignment(policy, sheet, asks, data)
    return (
        _objection_to_kind("task", sheet.task, tasks)
        or _objection_to_kind("solver", sheet.solver, policy.solvers)
        or _objection_to_solvers(solver_of, asks, policy.solvers)
        or _objection_to_phases(policy, asks)
        or _objection_to_replies(policy, asks, data, _kept_column(policy, sheet, data))
        or _objection_to_numbers(policy, sheet)
        or (_objection_to_unknown(sheet, data) if known_only else None)
    )


def _objection_to_alignment(policy: Policy, sheet: JobSheet, asks: Asks, data: PartyData) -> str | None:
    if policy.align is not None and sheet.align not in policy.align:
        return not_allowed("alignment", policy.align, repr(sheet.align))
    if sheet.align == "aided" and sheet.run_by is not None:
        return f"{sheet.run_by} runs the server, and with the parties' secret it could try keys. Align by 'curve'"
    return (
        _objection_to_phases(policy, asks)
        or _objection_to_replies(policy, asks, data, None)
        or _objection_to_numbers(policy, sheet)
    )


def _objection_to_kind(what: str, options: dict[str, object] | None, allowed: frozenset[str] | None) -> str | None:
    if allowed is None or (options is None and what == "solver"):
        return None
    kind = None if options is None else options.get("kind")
    if kind in allowed:
        return None
    return not_allowed(what, allowed, "a job that names none" if kind is None else f"{kind!r}")


def _objection_to_solvers(solver_of: SolverOf, asks: Asks, allowed: frozenset[str] | None) -> str | None:
    """Look at the solvers that requests belong to, whatever the verb, and whichever branch is taken."""
    if allowed is None:
        return None
    solvers = [kind for ask in asks if (kind := solver_of(ask.kind)) is not None]
    return next((why for kind in solvers if (why := _objection_to_kind("solver", {"kind": kind}, allowed))), None)


def _objection_to_phases(policy: Policy, asks: Asks) -> str | None:
    if policy.phases is None:
        return None
    phases = {ask.kind.phase for ask in asks}
    if refused := sorted(phases.difference(ALWAYS, policy.phases)):
        return not_allowed("phase", policy.phases, repr(refused[0]))
    return None


def _objection_to_replies(policy: Policy, asks: Asks, data: PartyData, kept_column: Reveals | None) -> str | None:
    """Look at what every reply of the job is sure to reveal; what one may reveal is judged when it is made."""
    if not policy.never:
        return None
    has_label = data.table.label_name is not None
    for ask in asks:
        told = _always_told(ask)
        if kept_column is not None and Reveals.SCORES in told:
            told = told | {kept_column}
        kept = sorted(policy.never & (told if has_label else told - {Reveals.LABELS}))
        if kept and ask.kind.reply is not None:
            return never_revealed(kept, ask.kind.reply)
    return None


def _kept_column(policy: Policy, sheet: JobSheet, data: PartyData) -> Reveals | None:
    """Find the only column that is never shown, of those that rows are scored by: a score is a quadratic form of these.

    Where one value is not known, it tells that: which form it is, sums tell.
    """
    if not policy.never:
        return None
    scored_by = [Reveals.FEATURES] * len(data.table.feature_names)
    task = sheet.task or {}
    if data.table.label_name is not None and "n_clusters" not in task and task.get("kind") != "classification":
        scored_by.append(Reveals.LABELS)
    kept = [kind for kind in scored_by if kind in policy.never]
    return kept[0] if len(kept) == 1 else None


def _always_told(ask: Ask) -> set[Reveals]:
    """Collect what is told whatever the data are; a label, by the party that has it, wherever it is learned from."""
    kind = ask.kind.reply
    if kind is None:
        return set()
    optional = _optional(kind)
    with_label = ask.kind.phase in LEARNING and ask.fields.get("with_label") is not False
    told = disclosures(kind).items()
    sure = {reveals for field, reveals in told if field not in optional or (with_label and reveals is Reveals.LABELS)}
    # Of rows that are drawn by class.
    by_class = {Reveals.LABELS} if ask.fields.get("n_told") else set()
    return sure | by_class | {*kind.steered, *kind.known_before}


@cache
def _optional(kind: type[Message]) -> frozenset[str]:
    """Name the fields that a message may leave empty."""
    hints = kind.__annotations__.items()
    return frozenset(field for field, hint in hints if type(None) in get_args(get_args(hint)[0]))


def narrower_choice(objection: Callable[[JobSheet], str | None], sheet: JobSheet, data: PartyData) -> Branches | None:
    """Find the widest choice within a sheet's that its owner's policy has nothing against; None where there is none.

    It is what refusals of narrower and narrower sheets would tell, and of nothing but the policy and the sheet.
    """
    asked, policy = sheet.branches, data.policy
    if asked is None or sheet.task is None:
        return None
    allowed = tuple(kind for kind in asked.solvers if policy.solvers is None or kind in policy.solvers)
    least = max(asked.least, _fewest_rows(policy, sheet))
    most = asked.most if policy.rows_a_request is None else min(asked.most, policy.rows_a_request)
    size = None if sheet.size is None else min(sheet.size, most)
    for evenly in dict.fromkeys((asked.evenly, True)):
        choice = Branches(allowed, least, most, evenly)
        is_narrower = choice != asked and allowed and least <= most
        if is_narrower and objection(msgspec.structs.replace(sheet, branches=choice, size=size)) is None:
            return choice
    return None


def _fewest_rows(policy: Policy, sheet: JobSheet) -> int:
    """Say on how many rows a policy lets a model of so many parameters be learned, at least."""
    if policy.parameters_a_row is None:
        return 1
    least = math.ceil(min(_parameters(sheet) / policy.parameters_a_row, float(sheet.rows)))
    return least + (_parameters(sheet) > policy.parameters_a_row * least)


def _parameters(sheet: JobSheet) -> int:
    return sum(each.features for each in sheet.parties) * int((sheet.task or {}).get("n_clusters", 1))


def _objection_to_numbers(policy: Policy, sheet: JobSheet) -> str | None:
    if len(sheet.parties) < policy.least_parties:
        return (
            f"its owner's policy asks for {policy.least_parties} parties at least; this job has {len(sheet.parties)}. "
            "Ask its owner, or more parties"
        )
    if policy.parameters_a_row is not None and sheet.learns and sheet.task is not None:
        size = min(sheet.size_of_coreset(), sheet.rows)
        parameters = _parameters(sheet)
        if parameters > policy.parameters_a_row * size:
            return (
                f"its owner's policy allows {policy.parameters_a_row:g} parameters a row; {parameters:,} parameters "
                f"would be learned on {size:,} rows. Use a larger size, or fewer clusters"
            )
    if policy.rows_a_request is not None and sheet.branches is not None:
        size = max(sheet.branches.most, sheet.size or 0)
        if size > policy.rows_a_request:
            return (
                f"its owner's policy limits a reply to {policy.rows_a_request:,} rows; this job may choose {size:,}. "
                "Ask for fewer"
            )
    return None


def _objection_to_unknown(sheet: JobSheet, data: PartyData) -> str | None:
    """Look whether a coreset or a model that is used again is one that the party knows, and no false weights of."""
    known = data.memory.notes()
    coresets = {each.digest for each in known_coresets(data)}
    if sheet.coreset is not None and coreset_digest(sheet.coreset[0], data) not in coresets:
        named = sheet.coreset[0].hex()
        return f"its owner's policy uses only coresets again that it agreed on, not {named}. Draw rows anew"
    if sheet.model is not None:
        part = data.of_prepared(sheet.model[sheet.place(data.name)])
        if ModelNote(part) not in known and part.hex() not in data.policy.accepted:
            return (
                "its owner's policy applies only models that it helped to learn, or that the owner accepted; this "
                f"one's part has the digest {part.hex()}"
            )
    return None
