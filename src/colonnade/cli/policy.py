"""`colonnade policy`: write an owner's policy, and say in words what one lets a server learn."""

from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from colonnade.cli.console import JsonFlag, say, show, show_as_is, show_json, write_new
from colonnade.cli.party import PartyToml
from colonnade.node.files import read_party_file, read_party_table
from colonnade.node.policy_template import level_values, policy_template
from colonnade.node.policy_words import LIMITS, worst_case
from colonnade.protocol.policy import Level, Policy
from colonnade.text_tables import WIDTH

app = typer.Typer(help="What a party answers: write it, or say what it lets a server learn.", no_args_is_help=True)


@app.callback()
def policy() -> None:
    """Write a policy for a party.toml, or say in words what one lets a server learn."""


@app.command("new")
def new(
    level: Annotated[Level, typer.Option("--level", help="How much the party answers.")],
    party_file: Annotated[
        Path | None,
        typer.Argument(
            help="A party.toml, with or without a policy: numbers are made for its table.", metavar="PARTY.toml"
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A new file to write to, instead of stdout.")] = None,
    json: JsonFlag = False,
) -> None:
    """Write a [policy] for a party.toml: every rule of the level, with a line on what it means.

    Example: colonnade policy new --level strict bank.toml --out policy.toml
    """
    file = None if party_file is None else read_party_table(party_file)
    if file is None:
        values = level_values(level)
        text = policy_template(level, values)
    else:
        rules = file.policy
        allowed = Policy(columns=rules.columns, never_columns=rules.never_columns or ())
        table = file.data.party(file.name, allowed, prepare=file.prepare).table
        values = {**level_values(level, table), **rules.column_rules()}
        text = policy_template(level, values, table, file.data.no_features())
    if out is not None:
        write_new(out, text)
    if json:
        show_json({"level": level, "policy": values, "file": None if out is None else str(out)})
    elif out is None:
        show_as_is(text.rstrip("\n"))
    else:
        show(str(out))
        say("Put it into the party's party.toml, then run `colonnade policy explain` on that.")


@app.command("explain")
def explain(party_file: PartyToml, json: JsonFlag = False) -> None:
    """Say in words what a server could learn under a party's policy at worst, a day and in all.

    Example: colonnade policy explain bank.toml
    """
    file = read_party_file(party_file)
    table = file.data.party(file.name, file.policy.policy(), prepare=file.prepare).table
    worst = worst_case(file.policy, table)
    if json:
        show_json({"party": file.name, "level": file.policy.level, "at_worst": worst, "not_checked": LIMITS})
        return
    show(f"What a server could learn of {file.name!r} at worst (level {file.policy.level}):\n")
    for each in worst:
        show(_item(each.about, each.words))
    show("\nWhat no policy can check:\n")
    for about, words in LIMITS.items():
        show(_item(about, words))


def _item(about: str, words: str) -> str:
    return fill(f"- {about}: {words}", WIDTH, subsequent_indent="  ")
