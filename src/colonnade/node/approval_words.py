"""A job in words for the owner who decides on it: what it is, what the party would tell, and what that would leave."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from colonnade.contracts import Table
from colonnade.disclosure import MEANINGS
from colonnade.ledger import SERVER
from colonnade.messages import UNCOUNTED, Reveals, disclosures
from colonnade.node.allowance import COUNTED
from colonnade.node.approvals import JobWords, Told
from colonnade.protocol.memory import AppliedNote, Memory, Note, PreparedNote, SumNote
from colonnade.protocol.policy import OF_MANY_ROWS, OF_ROWS, Policy
from colonnade.protocol.preparing import most_choices
from colonnade.protocol.sheet import JobSheet, SheetParty
from colonnade.routes import Ask, Route
from colonnade.solvers import AnySolver

# What the server passes on, signed, to all parties: rows that were drawn or set aside, and weights of rows.
PASSED_ON = (Reveals.ROW_IDS, Reveals.ROW_WEIGHTS)
PREPARE = "prepare"


def words_of(sheet: JobSheet, route: Route, party: str, table: Table, policy: Policy, memory: Memory) -> JobWords:
    """Put a job into words for a party, as far as its sheet and its route tell."""
    asks = list({ask.kind: ask for ask in route.asks()}.values())
    takes = {
        "rows": _n_rows(sheet) * sum(bool(OF_ROWS.intersection(_told(ask, table))) for ask in asks),
        "row_ids": _n_rows(sheet) * sum(Reveals.ROW_IDS in _told(ask, table) for ask in asks),
    }
    if sheet.align is not None and table.keys is not None:
        takes["keys"] = table.keys.count
    return JobWords(
        job_facts(sheet),
        sheet.rows or table.n_rows,
        tuple(_tells(sheet, asks, party, table)),
        takes,
        tuple(_in_all(sheet, policy, memory, sheet.parties[sheet.place(party)])),
    )


def job_facts(sheet: JobSheet) -> dict[str, object]:
    """Say what a job is for: names and numbers, those that are there."""
    kinds = {"task": sheet.task, "sampler": sheet.sampler, "solver": sheet.solver, "split": sheet.split}
    facts = {
        "verb": sheet.verb,
        **{name: None if words is None else words.get("kind") for name, words in kinds.items()},
        "align": sheet.align,
        "rows": _n_rows(sheet) if sheet.align is None else None,
        "parties": [each.name for each in sheet.parties],
        "run_by": sheet.run_by,
        "to": sheet.to,
        "applies_a_model": sheet.model is not None or None,
        "most_epochs": getattr(sheet.solver and msgspec.convert(sheet.solver, AnySolver), "max_epochs", None),
    }
    return {name: value for name, value in facts.items() if value is not None}


def _tells(sheet: JobSheet, asks: list[Ask], party: str, table: Table) -> Iterator[Told]:
    """List what the replies reveal, the worst first, and what another party learns with their help."""
    server = SERVER if sheet.run_by is None else f"{SERVER} ({sheet.run_by})"
    for what, meaning in MEANINGS.items():
        replies = [ask.kind.reply.__name__ for ask in asks if ask.kind.reply is not None and what in _told(ask, table)]
        if replies:
            rows = None if what in (*OF_MANY_ROWS, Reveals.LEVELS) else _n_rows(sheet)
            if sheet.align is not None and table.keys is not None:
                rows = table.keys.count
            to = (
                (server, *(each.name for each in sheet.parties if each.name != party))
                if what in PASSED_ON
                else (server,)
            )
            yield Told(str(what), meaning, to, rows, tuple(dict.fromkeys(replies)))
    if sheet.model is not None and sheet.to not in (None, party):
        what = Reveals.PREDICTIONS
        yield Told(str(what), f"{MEANINGS[what]}, all parties' together", (str(sheet.to),), _n_rows(sheet), ())


def _told(ask: Ask, table: Table) -> set[Reveals]:
    """Collect what a reply can reveal of this party's table."""
    if ask.kind.reply is None:
        return set()
    missing = {Reveals.LABELS} if table.label_name is None else set()
    missing |= {Reveals.ROW_WEIGHTS} if table.weight_column is None else set()
    missing |= {Reveals.MOMENTS} if ask.fields.get("scaling") == "own" else set()
    missing |= {Reveals.LEVELS} if table.preparing is None or not table.preparing.tell_levels else set()
    return {*disclosures(ask.kind.reply).values(), *ask.kind.reply.steered} - UNCOUNTED - missing


def _n_rows(sheet: JobSheet) -> int:
    """Tell of how many rows the job is, at most; copies count."""
    drawn = (sheet.sampler or {}).get("size")
    sizes = [
        sheet.size,
        None if sheet.chosen is None else sheet.chosen[1],
        None if sheet.branches is None or sheet.verb == "plan" else sheet.branches.most,
        drawn if sheet.coreset is None else sheet.coreset[1],
    ]
    return max((int(size) for size in sizes if size is not None), default=sheet.rows)


def _in_all(sheet: JobSheet, policy: Policy, memory: Memory, party: SheetParty) -> Iterator[str]:
    """Say what is left of what the owner allows for all time, and what a job takes that is not on its sheet."""
    if sheet.align == "curve":
        yield "keys of all other parties' lists are compared, too, and count as its own do (keys_a_day)"
    notes = memory.notes()
    if sheet.verb == PREPARE and party.prepared is not None:
        yield "how many columns it makes of its own for this choice of rows; the job that uses them asks again"
        choices = most_choices(sheet.rows, policy.least_rows)
        made = sum(isinstance(note, PreparedNote) for note in notes)
        if choices is not None:
            yield f"choices of rows to prepare columns by: {max(choices - made, 0):,} of {choices:,} are left, or more"
    left = left_for_all_time(policy, notes, sheet.rows, party.features, party.label)
    after = {
        "models_in_all": "this job applies one, or one for each centre, where another party learns what comes of it",
        "sums_in_all": "how many of them this job takes is not on its sheet",
    }
    yield from (
        f"{words}; {after[name]}" for name, words in left.items() if name == "sums_in_all" or sheet.model is not None
    )


def left_for_all_time(policy: Policy, notes: Iterable[Note], rows: int, features: int, label: bool) -> dict[str, str]:
    """Say what is left of what the owner allows for all time, by rule, of those that have a limit."""
    found, most = {}, policy.models_of(features)
    notes = tuple(notes)
    if most is not None:
        applied = sum(note.numbers for note in notes if isinstance(note, AppliedNote))
        found["models_in_all"] = f"models_in_all: {max(most - applied, 0):,} of {most:,} are left"
    if policy.sums_in_all is not None:
        limit = int(policy.sums_in_all * rows * (features + label))
        told = sum(note.numbers for note in notes if isinstance(note, SumNote))
        found["sums_in_all"] = f"sums_in_all: {max(limit - told, 0):,} of {limit:,} numbers are left"
    return found


def told_in_words(told: Told) -> str:
    """Say to whom the party would tell what, and what that means."""
    rows = "" if told.rows is None else f" of up to {told.rows:,} rows"
    return f"to {', '.join(told.to)}: {told.what}{rows}. {told.meaning.capitalize()}"


def facts_in_words(facts: Mapping[str, object]) -> str:
    """Say what a job is for, in one line."""
    return ", ".join(f"{name.replace('_', ' ')} {_listed(value)}".strip() for name, value in facts.items())


def day_in_words(takes: Mapping[str, int], left: Mapping[str, int]) -> str:
    """Say what a job takes of the day's amounts, as far as its sheet tells, and what that leaves."""
    if not left:
        return "no limit a day"
    parts = []
    for name, most in left.items():
        taken = takes.get(name)
        after = "" if taken is None else f", {max(most - taken, 0):,} after up to {taken:,} for this job"
        parts.append(f"{most:,} {COUNTED[name]} left{after}")
    return f"{'; '.join(parts)}. Each request counts once here; a solver of many rounds asks again"


def _listed(value: object) -> str:
    if isinstance(value, list):
        return " + ".join(map(str, value))
    if isinstance(value, bool):
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)
