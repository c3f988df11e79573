"""What a server could learn under an owner's policy at worst, in plain words; no guess at what it would want."""

from collections.abc import Iterable
from math import ceil

import msgspec

from colonnade.contracts import Table
from colonnade.disclosure import MEANINGS
from colonnade.messages import Reveals
from colonnade.node.files import PolicyFile
from colonnade.protocol.policy import OF_MANY_ROWS, OF_ROWS, Policy
from colonnade.protocol.preparing import most_choices

# What no policy can rule out: it is a party's judgement of what it can see for itself.
LIMITS = {
    "parties that join forces": "Masks and shares hold against the server alone and against a party alone, not against "
    "parties that join forces with the server.",
    "false data": "Another party can invent its columns, its scores and its labels.",
    "a lie under a mask": "That a masked sum is wrong may be noticed, but not who made it wrong.",
    "false models": "That a model is what honest learning gives is not checked, only that it is one that was told at "
    "the end of a run, or that the owner accepted.",
    "patience": "Amounts are a day (UTC) and begin anew; only models_in_all and sums_in_all are for all time.",
    "many sums": "However they are added and subtracted, sums leave half of every row open, and stay fewer than "
    "values. Values that are few, such as yes and no, can be worked out from fewer equations.",
}


class Worst(msgspec.Struct, frozen=True):
    """The worst that can become known of one thing."""

    about: str
    words: str


def worst_case(rules: PolicyFile, table: Table) -> list[Worst]:
    """Say what a server could learn of a table under a policy, at worst, a day and in all.

    Tasks, solvers and phases that the policy leaves out may make it less; the amounts here hold whatever is asked.
    """
    policy, unprepared = rules.policy(), table.preparing
    table = table if unprepared is None else table.prepared(unprepared.fitted(None))
    told = {
        "jobs": _jobs(policy),
        "always told": _schema(table),
        "values of single rows": _values(rules, policy, table),
        "other numbers about single rows": _numbers(rules, policy, table),
        "which rows were drawn": _row_ids(rules, policy, table),
        "numbers about many rows": _moments(rules, policy, table),
        "models applied for others": _models(policy, len(table.feature_names)),
        "the server and another party together": _together(rules, policy, table),
    }
    if unprepared is not None:
        told["columns that it prepares"] = _prepared(policy, table, tells_levels=unprepared.tell_levels)
    return [Worst(about, f"{words}.") for about, words in told.items()]


def pace(a_day: int | None, n_rows: int) -> str:
    """Say how fast rows are told, at so many a day; None is no limit."""
    if a_day is None or a_day >= n_rows:
        return f"all {n_rows:,} rows on the first day"
    if a_day == 0:
        return "no rows"
    return f"up to {a_day:,} rows a day of {n_rows:,}; after {ceil(n_rows / a_day):,} days all of them"


def _schema(table: Table) -> str:
    keys = "" if table.key_digest is None else ", and a digest of its keys"
    return f"the names of its {_n_columns(table)} columns, how many rows it has ({table.n_rows:,}){keys}"


def _prepared(policy: Policy, table: Table, *, tells_levels: bool) -> str:
    most = most_choices(table.n_rows, policy.least_rows)
    told = "how many it makes of each, which depends on the rows that count"
    kept = "levels and means stay here"
    if tells_levels and Reveals.LEVELS not in policy.never:
        kept = "levels, too, as tell_levels says; means stay here"
    if most is None:
        shared = "by many choices which rows share a rare level"
        return f"{told}: for any choice of these, and {shared}. {kept.capitalize()}"
    return f"{told}: for {most} choices of these, {policy.least_rows:,} rows apart or more. {kept.capitalize()}"


def _jobs(policy: Policy) -> str:
    rules = [
        f"tasks: {'any' if policy.tasks is None else _listed(policy.tasks)}",
        f"solvers: {'any' if policy.solvers is None else _listed(policy.solvers)}",
    ]
    if policy.phases is not None:
        rules.append(f"phases: {_listed(policy.phases)}")
    if policy.least_parties > 1:
        rules.append(f"{policy.least_parties} parties or more")
    if policy.parameters_a_row is not None:
        rules.append(f"at most {policy.parameters_a_row:g} parameters for each row that is learned on")
    if policy.known_only:
        rules.append("coresets and models only that it knows from earlier runs, or its owner accepted")
    return "; ".join(rules)


def _values(rules: PolicyFile, policy: Policy, table: Table) -> str:
    kept = {Reveals.FEATURES: bool(table.feature_names), Reveals.LABELS: table.label_name is not None}
    kept[Reveals.ROW_WEIGHTS] = table.weight_column is not None
    held = [kind for kind, is_here in kept.items() if is_here]
    shown = [kind for kind in held if kind not in policy.never]
    if not shown:
        return f"none: the policy never reveals {' or '.join(held)}"
    limit = rules.a_day(table.n_rows).rows
    return f"{' and '.join(shown)}: {pace(limit, table.n_rows)}. A row counts each time it is told"


def _numbers(rules: PolicyFile, policy: Policy, table: Table) -> str:
    kinds = [kind for kind in MEANINGS if kind in OF_ROWS and kind not in policy.never]
    others = [kind for kind in kinds if kind not in (Reveals.FEATURES, Reveals.LABELS, Reveals.ROW_WEIGHTS)]
    if not others:
        return "none"
    limits = rules.a_day(table.n_rows)
    meanings = "; ".join(f"{kind} ({MEANINGS[kind].partition(';')[0]})" for kind in others)
    numbers = "any number of them" if limits.numbers is None else f"up to {limits.numbers:,} a day"
    return f"{meanings}: {numbers}, about {pace(limits.rows, table.n_rows)}"


def _row_ids(rules: PolicyFile, policy: Policy, table: Table) -> str:
    if Reveals.ROW_IDS in policy.never:
        return "none: the policy never reveals row ids"
    return f"{pace(rules.a_day(table.n_rows).row_ids, table.n_rows)}. Unusual rows are drawn more often than others"


def _moments(rules: PolicyFile, policy: Policy, table: Table) -> str:
    if policy.never >= OF_MANY_ROWS:
        return f"none: the policy never reveals {_listed(map(str, OF_MANY_ROWS))}"
    limit, n_values, least = rules.a_day(table.n_rows).moments, table.n_rows * _n_columns(table), policy.least_rows
    a_day = "any number a day" if limit is None else f"up to {limit:,} a day, with those under masks"
    if least == 1:
        return (
            f"{a_day}, and as many equations about its {n_values:,} values. Sums may be over few rows, and differ by "
            "one row from an earlier sum: together they show rows"
        )
    if least > table.n_rows:
        return (
            f"no sums, which are over {least:,} rows or more, where the table has {table.n_rows:,}; {a_day} of others"
        )
    share = policy.sums_in_all
    most = "any number in all" if share is None else f"at most {int(share * n_values):,} numbers in all, for all time"
    return (
        f"{a_day}. Sums: {most}, and as many equations about its {n_values:,} values; each over {least:,} rows or "
        f"more, and {least:,} rows apart from every earlier one"
    )


def _models(policy: Policy, n_columns: int) -> str:
    most = policy.models_of(n_columns)
    if Reveals.PREDICTIONS in policy.never:
        return "none: the policy never reveals predictions"
    if most is None:
        return f"any number: {n_columns} of them are as many equations about a row as it has columns, and show it"
    each = f"{most:,} in all, for all time, of {n_columns} columns: as many equations about each row"
    shown = "" if most < n_columns else ", and as many as it has columns show it"
    return f"{each}{shown}, told to the party that receives what they predict. A clustering makes one for each centre"


def _together(rules: PolicyFile, policy: Policy, table: Table) -> str:
    masks = "if all other parties join forces with the server, this party's part of every sum under masks"
    is_shared = policy.solvers is None or "gram" in policy.solvers
    if not is_shared or Reveals.MOMENTS in policy.never:
        return masks
    limit = rules.a_day(table.n_rows).moments
    rows = pace(None if limit is None else limit // _n_columns(table), table.n_rows)
    return f"by one party's shares of a SecureGram run, every value of its rows: {rows}. Also, {masks}"


def _n_columns(table: Table) -> int:
    return len(table.feature_names) + (table.label_name is not None)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
