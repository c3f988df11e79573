"""`colonnade check`."""

from pathlib import Path
from textwrap import fill
from typing import Annotated, Any

import msgspec
import typer

from colonnade.cli.console import JsonFlag, show, show_json, talk
from colonnade.cli.job import is_job, read_job
from colonnade.data.checking.check import Check, Preparing, check_table
from colonnade.data.checking.columns import ColumnSeen, Tell
from colonnade.data.checking.findings import Finding
from colonnade.data.sources import Roles
from colonnade.errors import InputError
from colonnade.ledger import aligned
from colonnade.node.files import DataFile, data_beside, read_party_table
from colonnade.options import listed
from colonnade.preparation.rules import Date
from colonnade.protocol.policy import Policy
from colonnade.text_tables import WIDTH

NAME_WIDTH, SEEN_WIDTH = 24, 34
STOPPED = 3
# Above this, coefficients are uncertain (Belsley, Kuh and Welsch 1980).
UNCERTAIN = 30

FileArgument = Annotated[
    Path,
    typer.Argument(
        help="A party.toml, a job file, or a table as it is: a CSV, Parquet, Arrow or Feather file, or a folder of "
        "Parquet files.",
        metavar="FILE",
    ),
]
LabelOption = Annotated[str | None, typer.Option("--label", help="Of a table: the column to learn.")]
KeyOption = Annotated[
    list[str] | None, typer.Option("--key", help="Of a table: the column that names rows; once for each of several.")
]
KeysFlag = Annotated[bool, typer.Option("--show-keys", help="Show the keys of rows that stand out.")]


def command(
    file: FileArgument,
    label: LabelOption = None,
    key: KeyOption = None,
    show_keys: KeysFlag = False,
    json: JsonFlag = False,
) -> None:
    """Look at a party's table before it takes part: what stops it, what is odd, and what to do.

    Says which columns have gaps, are constant, repeat others or nearly depend
    on them, which rows stand far out, which levels are rare, how labels are
    distributed, whether the key names rows. Nothing is sent. Exits with 3 where
    the party would not start. Of a job file all parties are looked at; a table
    as it is, as prepare = "auto" would prepare it.

    Example: colonnade check bank.toml

    Example: colonnade check bank.csv --key customer --label spending
    """
    with talk().status("reading the table") as status:
        checks = _checks(file, Roles(label, key or None), show_keys, status.update)
    if json:
        show_json([_summary(each) for each in checks] if is_job(file) else _summary(checks[0]))
    else:
        show("\n\n\n".join(_text(each) for each in checks))
    if not all(each.starts for each in checks):
        raise typer.Exit(STOPPED)


def _checks(path: Path, roles: Roles, show_keys: bool, tell: Tell) -> list[Check]:
    if path.suffix != ".toml":
        return [check_table(path.name, str(path), roles, "auto", Policy(level="open"), show_keys=show_keys, tell=tell)]
    if roles.items():
        raise InputError(f"--label and --key are for a table as it is; {path} names its own. Leave them out.")
    if not is_job(path):
        file = read_party_table(path)
        return [_check(file.name, file.data, file.prepare, file.policy.policy(), show_keys, tell)]
    return [
        _check(
            each.name, data_beside(each, path.parent), each.prepare, Policy(each.never, level="open"), show_keys, tell
        )
        for each in read_job(path, None).party
    ]


def _check(name: str, data: DataFile, prepare: Preparing, policy: Policy, show_keys: bool, tell: Tell) -> Check:
    roles = Roles(data.label, data.key, data.weight, data.split, data.duplicates)
    return check_table(name, data.source(), roles, prepare, policy, show_keys=show_keys, tell=tell)


def _summary(check: Check) -> dict[str, Any]:
    """Put a check into one object for programs."""
    told: dict[str, Any] = msgspec.to_builtins(check)
    rules, roles, together = told.pop("rules"), told.pop("roles"), told.pop("together") or {}
    told["columns"] = [
        {**column, "role": roles.get(column["name"]), "rule": rules.get(column["name"])} for column in told["columns"]
    ]
    return {**told, **together}


def _text(check: Check) -> str:
    """Lay out a check for people."""
    parts = [_head(check), _columns(check), _label(check), _together(check), _findings(check)]
    return "\n\n".join(part for part in parts if part)


def _head(check: Check) -> str:
    n_stops = sum(each.severity == "stops" for each in check.findings)
    verdict = "Nothing stops it." if check.starts else f"It would not start, for {n_stops} reason{'s'[: n_stops > 1]}."
    size = f"{check.rows:,} rows, {len(check.columns):,} columns. " if check.columns else ""
    return f"{check.party}: {size}{verdict}"


def _columns(check: Check) -> str:
    if not check.columns:
        return ""
    lines = [
        (
            _cut(each.name, NAME_WIDTH),
            check.roles.get(each.name, "" if each.name in check.rules else "not read"),
            each.kind,
            f"{each.missing:,}",
            _cut(_seen(check, each), SEEN_WIDTH),
        )
        for each in check.columns
    ]
    return aligned([("column", "role", "kind", "missing", "seen"), *lines], numbers=(3,))


def _seen(check: Check, column: ColumnSeen) -> str:
    if check.roles.get(column.name) != "key" or check.key is None or check.key.problem is not None:
        return column.in_values(levels=not (column.kind == "text" and isinstance(check.rules.get(column.name), Date)))
    return f"{check.key.repeated:,} rows repeat a key" if check.key.repeated else "names each row"


def _label(check: Check) -> str:
    if check.label is None:
        return ""
    if check.label.classes:
        n_labels = sum(check.label.classes.values())
        parts = [f"{name!r} {100 * count / n_labels:.3g} %" for name, count in check.label.classes.items()]
        return fill(f"Label {check.label.column!r}: {len(parts):,} classes; {listed(parts)} of the rows.", WIDTH)
    shares = [f"{100 * float(share):g} %" for share in check.label.quantiles]
    values = [f"{value:,.4g}" for value in check.label.quantiles.values()]
    table = aligned([shares, values], numbers=range(len(shares)))
    return (
        f"Label {check.label.column!r}: mean {check.label.mean:,.4g}, {100 * check.label.zeros:.3g} % zeros; this "
        f"share of rows has at most:\n{table}"
    )


def _together(check: Check) -> str:
    if check.together is None or not check.prepared_columns:
        return ""
    condition = check.together.condition
    number = (
        "infinite: some determine others"
        if condition is None
        else f"{condition:,.0f}"
        if condition > UNCERTAIN
        else f"{condition:.3g}"
    )
    warning = (
        f"; above {UNCERTAIN}, coefficients are uncertain" if condition is not None and condition > UNCERTAIN else ""
    )
    return fill(f"Prepared: {check.prepared_columns:,} columns. Their condition number is {number}{warning}.", WIDTH)


def _findings(check: Check) -> str:
    if not check.findings:
        return "Nothing was found that needs a look."
    return "Found, worst first:\n\n" + "\n".join(_finding(each) for each in check.findings)


def _finding(finding: Finding) -> str:
    word = {"stops": "STOPS", "look": "look ", "note": "note "}[finding.severity]
    named = finding.words.startswith(("Party ", "Column ", "There is no "))
    where = "" if named or not finding.columns else f"{finding.columns[0]!r}: "
    advice = [_wrapped(f"       -> {finding.advice}", 10)] if finding.advice else []
    return "\n".join([_wrapped(f"{word}  {where}{finding.words}", 7), *advice])


def _wrapped(text: str, indent: int) -> str:
    # What is to be written into a file stays on one line: a hard space is none to break at.
    kept = fill(text.replace(" = ", "\u00a0=\u00a0"), WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False)
    return kept.replace("\u00a0", " ")


def _cut(text: str, width: int) -> str:
    text = text if text.isprintable() else repr(text)
    return text if len(text) <= width else f"{text[: width - 3]}..."
