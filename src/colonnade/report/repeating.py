"""Everything that is needed to repeat a run."""

from collections.abc import Iterator
from typing import Any

from colonnade.contracts import PartyCard
from colonnade.number_words import count, duration
from colonnade.report.sections import Section
from colonnade.report.tables import Cell, printable, table, text
from colonnade.run import Run

# The snippet names so many parties.
MOST_PARTIES = 50
WIDEST_CODE = 100


def repeat_section(run: Run[Any]) -> Section:
    """List what decides the result bit for bit, and give the call."""
    words = (
        "With the same tables, these options and this seed, and BLAS on one thread, the result is the same to the last "
        "bit. A fingerprint changes with a party's table, and tells nothing else.",
    )
    facts = [(text(what), Cell(printable(how))) for what, how in _facts(run)]
    tables = [table("How the run was made", ("what", "how"), facts, all_of_it="")]
    lines = [
        (
            text(card.name),
            Cell(count(card.n_rows)),
            Cell(count(card.n_features)),
            text(card.label_name or ""),
            Cell(mark),
        )
        for card in run.roster.cards
        for mark in [_fingerprint(run, card)]
    ]
    head = ("party", "rows", "columns", "label", "fingerprint of its table")
    tables.append(table("The parties' tables", head, lines, all_of_it="All are in run.tables."))
    return Section("repeat", "Repeat the run", words, tables=tuple(tables), code=snippet(run))


def snippet(run: Run[Any]) -> str:
    """Write the call, with the parties' tables as files of their names."""
    cards = run.roster.cards
    lines = ["import colonnade as cn", "", "parties = ["]
    lines += [f"    {_party(run, card, place)}," for place, card in enumerate(cards[:MOST_PARTIES], start=1)]
    if len(cards) > MOST_PARTIES:
        lines.append(f"    # and {len(cards) - MOST_PARTIES} more")
    lines += ["]", "federation = cn.Federation(parties)"]
    if run.model is None:
        lines.append(f"run = federation.coreset({_call(run.task)}, {_call(run.sampler)}{_split(run)}, seed={run.seed})")
        return "\n".join(lines)
    drawn = "coreset=coreset" if run.sampler is None else f"sampler={_call(run.sampler)}"
    if run.sampler is None:
        lines.append("coreset = ...  # it was given: that of another run")
    lines.append("run = federation.fit(")
    arguments = [_call(run.task), drawn, f"solver={_call(run.solver)}", _split(run).removeprefix(", ")]
    lines += [f"    {each}," for each in [*filter(None, arguments), f"seed={run.seed}"]]
    return "\n".join([*lines, ")"])


def _facts(run: Run[Any]) -> Iterator[tuple[str, str]]:
    yield "task", repr(run.task)
    yield "sampler", "a coreset was given" if run.sampler is None else repr(run.sampler)
    yield "solver", "none" if run.solver is None else repr(run.solver)
    yield "rows held out", "none" if run.split is None else repr(run.split)
    yield "seed", str(run.seed)
    if run.why is not None:
        yield "why this way", run.why
    yield "time", duration(run.seconds)
    for package, version in run.versions.items():
        yield f"version of {package}", version
    if run.coreset.alignment is not None:
        yield "alignment", run.coreset.alignment


def _fingerprint(run: Run[Any], card: PartyCard) -> str:
    return "" if run.tables is None else run.tables.fingerprints.get(card.name, "")


def _party(run: Run[Any], card: PartyCard, place: int) -> str:
    label = "" if card.label_name is None else f", label={card.label_name[:WIDEST_CODE]!r}"
    weights = ', weights="..."' if card.has_weights else ""
    split = ', split="..."' if card.has_split else ""
    prepare = ", prepare=..." if run.tables is not None and card.name in run.tables.prepared else ""
    key = ", key=..." if run.coreset.alignment is not None else ""
    return f'cn.Party({card.name[:WIDEST_CODE]!r}, "table{place}.parquet"{label}{key}{weights}{split}{prepare})'


def _call(option: Any) -> str:
    return f"cn.{option!r}"[:2000]


def _split(run: Run[Any]) -> str:
    return "" if run.split is None else f", split={_call(run.split)}"
