"""A run in about ten lines for people: what was learned from whom, how, how good it is, what was sent and shown."""

from typing import Any

import msgspec

from colonnade.number_words import in_bytes
from colonnade.options import listed
from colonnade.sampling import AllRows
from colonnade.text_tables import in_a_line

# Of more parties, the first are named.
NAMED = 5
# Of a number, where all rows are sent as they are.
BYTES_A_NUMBER = 8


def run_in_words(run: Any) -> list[str]:
    """Put a run into words, a sentence for each thing that a person would ask first."""
    lines = [*_what(run), _how(run), *([run.why] if run.why else []), _rows(run), *_goodness(run)]
    return [*lines, _sent(run), run.disclosure.headline, *_next(run)]


def _what(run: Any) -> list[str]:
    cards = run.roster.cards
    learned = "A coreset for" if run.model is None else f"{type(run.model).__name__} of"
    names = listed([in_a_line(card.name) for card in cards], NAMED)
    party = run.roster.label_party if run.task.needs_label else None
    label = "" if party is None else f"; the label is {in_a_line(party)}'s"
    n_columns = len(run.roster.feature_names)
    return [f"{learned} {_brief(run.task)}.", f"From {len(cards):,} parties: {names}; {n_columns:,} columns{label}."]


def _brief(task: Any) -> str:
    """Write a task with the options that are not as they would be anyway."""
    fields = msgspec.structs.fields(task)
    told = [f"{each.name}={value!r}" for each in fields if (value := getattr(task, each.name)) != each.default]
    return f"{type(task).__name__}({', '.join(told)})"


def _how(run: Any) -> str:
    ways = f"{run.sampler or run.coreset.sampler}, {run.solver or 'no solver'}"
    return f"How: {ways}; seed {run.seed}, {run.seconds:.2f} s."


def _rows(run: Any) -> str:
    coreset, found = run.coreset, run.diagnostics
    if isinstance(run.sampler, AllRows):
        return f"Rows: all {len(coreset):,} that count."
    return (
        f"Rows: {len(coreset):,} drawn of {coreset.n_rows:,} ({found['distinct_rows']:,} distinct), effective size "
        f"{found['effective_size']:,.0f}."
    )


def _goodness(run: Any) -> list[str]:
    found = run.findings
    if run.model is None:
        return []
    if found.evaluation is None and found.certificate is None:
        cost = f"objective {run.facts['cost']:.4g} on its own rows" if "cost" in run.facts else "not known"
        return [f"How good: {cost}; not looked at on others yet."]
    lines = []
    if found.evaluation is not None:
        n_rows = f"{found.evaluation.n_evaluated:,}"
        is_sampled = getattr(found.evaluation, "cost_interval", None) is not None
        rows = f"all {n_rows} rows" if run.split is None else f"{n_rows} held-out rows"
        rows = f"a sample of {n_rows} rows" if is_sampled else rows
        gap = found.excess
        side = "above" if gap is None or gap >= 0 else "below"
        excess = "" if gap is None else f"; {100 * abs(gap):.2f} % {side} a model of all rows"
        lines.append(f"How good: on {rows} {found.evaluation.in_words()}{excess}.")
    if found.certificate is not None:
        doubt = "" if found.certificate.trusted else " NOT TO BE TRUSTED: print run.findings.certificate."
        lines.append(f"Certified: {found.certificate.excess_in_words()}.{doubt}")
    return lines


def _sent(run: Any) -> str:
    ledger = run.ledger
    return (
        f"Sent: {in_bytes(ledger.bytes)} in {ledger.n_rounds:,} rounds ({ledger.units:,} units); all rows as they are "
        f"would be {in_bytes(bytes_of_all(run))}."
    )


def bytes_of_all(run: Any) -> int:
    """Count the bytes of all cells that the task is about, as its columns are prepared."""
    label = run.task.needs_label and run.roster.label_party is not None
    return int(BYTES_A_NUMBER * run.coreset.n_rows * (len(run.roster.feature_names) + label))


def _next(run: Any) -> list[str]:
    if run.model is None:
        return ["Next: federation.fit(task, coreset=run.coreset)."]
    if run.findings.evaluation is None:
        held_out = "" if run.split is None else ", split=run.split"
        return [f"Next: run.with_findings(federation.evaluate(run.model{held_out}))."]
    return []
