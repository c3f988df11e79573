"""A [policy] for party.toml, with comments for its owner: every rule of a level, and those that it leaves open."""

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import NamedTuple

from colonnade.catalogue import SOLVERS, TASKS
from colonnade.contracts import Table
from colonnade.messages import UNCOUNTED, Reveals
from colonnade.node.files import DAY_LIMITS, PolicyFile
from colonnade.node.toml_text import toml_line
from colonnade.protocol.policy import LEVELS, PHASES, Level


class Rule(NamedTuple):
    """A rule: what it means, and what it could be where a level leaves it open."""

    name: str
    meaning: str
    example: object


RULES = (
    Rule(
        "never",
        f"What no reply may reveal, of: {', '.join(str(kind) for kind in Reveals if kind not in UNCOUNTED)}.",
        ["labels"],
    ),
    Rule("tasks", f"The only tasks it takes part in, of: {', '.join(TASKS)}.", ["regression"]),
    Rule("solvers", f"The only solvers it takes part in, of: {', '.join(SOLVERS)}.", ["gram"]),
    Rule(
        "phases",
        f"The only phases it answers in, of: {', '.join(PHASES)}.",
        ["framing", "sampling", "summing", "solving"],
    ),
    Rule("columns", "The only columns of the file that enter, label, key, weight and split among them.", ["income"]),
    Rule("never_columns", "Columns of the file that never enter: nothing is computed or told of them.", ["name"]),
    Rule("align", "The only ways to match records, of: clear (tells the server all keys), aided, curve.", ["curve"]),
    Rule("least_parties", "It takes part in jobs of so many parties or more.", 3),
    Rule("least_rows", "Every sum it tells is over so many rows, and so many rows apart from every earlier sum.", 10),
    Rule("parameters_a_row", "A model has at most so many parameters for each row that it is learned on.", 0.1),
    Rule("known_only", "Only coresets it agreed on, and models it helped to learn, are used again.", True),
    Rule("accepted", "Models that it applies besides: digests, as its refusal names them.", ["0123abcd" * 8]),
    Rule(
        "models_in_all", "So many models are applied for other parties, for all time; below 1: times its columns.", 100
    ),
    Rule("sums_in_all", "Sums tell so many numbers for each value of its table, for all time; 1 could be all.", 0.5),
    Rule("rows_a_request", "No reply tells values, scores, predictions or weights of more rows than this.", 5_000),
    Rule("rows_a_day", "The same for all replies of a day (UTC) together; a row counts each time it is told.", 100_000),
    Rule(
        "row_ids_a_day",
        "How many drawn rows it names in a day; if left out, as many as it has rows, and at level open any number.",
        100_000,
    ),
    Rule(
        "keys_a_day",
        "How many keys, its own and others', it compares in a day to match records: a party may list guesses.",
        10_000_000,
    ),
    Rule(
        "numbers_a_day", "How many numbers about single rows it tells in a day: values, scores, predictions.", 1_000_000
    ),
    Rule("moments_a_day", "How many numbers about many rows it tells in a day, those under masks too.", 10_000_000),
    Rule("models_a_day", "How many times a day it applies a model, or a step of one, to rows.", 100_000),
    Rule("requests_a_minute", "How many requests it answers in any sixty seconds.", 1_000),
    Rule("open_runs", "How many runs may be unfinished at the same time.", 4),
)
WIDTH = 100
HEADERS = {
    "strict": "tells nothing of single rows but which were drawn, and sums with other parties under masks",
    "usual": "shows drawn rows, a limited number a day; sums of enough rows; applies only models it knows",
    "open": "answers whatever a job asks for, all rows included",
}


def policy_template(
    level: Level, values: Mapping[str, object], table: Table | None = None, no_features: Sequence[str] = ()
) -> str:
    """Write [policy] of a level: rules with these values, and comments.

    Parameters
    ----------
    level : str
        Its name.
    values : mapping
        What is written of each rule, by its name; those not in it are shown by example, not in use.
    table : Table, optional
        The party's, for examples.
    no_features : sequence of str
        Names of columns that are its label, key, weight or split.
    """
    lines = [*_comment(f"Level {level}: {HEADERS[level]}."), *_about(table), "[policy]", f'level = "{level}"']
    for rule in RULES:
        lines += ["", *_comment(rule.meaning)]
        example = f"# {toml_line(rule.name, _example(rule, table, no_features))}"
        lines.append(toml_line(rule.name, values[rule.name]) if rule.name in values else example)
    return "\n".join(lines) + "\n"


def level_values(level: Level, table: Table | None = None) -> dict[str, object]:
    """List what a level says of each rule that it does not leave open."""
    file = PolicyFile(level=level)
    amounts = {name: amount for name, amount in DAY_LIMITS[level].items() if name != "row_ids"}
    if amounts and table is not None:
        amounts["row_ids"] = file.a_day(table.n_rows).row_ids or 0
    values = {**LEVELS[level], **{f"{name}_a_day": amount for name, amount in amounts.items()}}
    if table is not None and "models_in_all" in values:
        made = table if table.preparing is None else table.prepared(table.preparing.fitted(None))
        values["models_in_all"] = file.policy().models_of(len(made.feature_names))
    return {**values, "open_runs": file.open_runs}


def _about(table: Table | None) -> list[str]:
    remark = "# Put it into party.toml. What follows a # is a remark, or a rule that is not in use."
    if table is None:
        return [remark]
    label = "" if table.label_name is None else " and a label"
    return [f"# For a table of {table.n_rows:,} rows, {len(table.feature_names)} features{label}.", remark]


def _comment(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent="# ", subsequent_indent="# ")


def _example(rule: Rule, table: Table | None, no_features: Sequence[str]) -> object:
    if table is not None and rule.name == "columns":
        return [*table.feature_names, *no_features]
    if table is not None and rule.name == "never_columns":
        return list(table.feature_names[:1])
    return rule.example
