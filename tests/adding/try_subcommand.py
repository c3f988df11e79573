"""Played by test_adding.py in a copy of the library that has the toy subcommand: it is listed, and it runs."""

import json

from typer.testing import CliRunner

from colonnade.catalogue import kinds
from colonnade.cli.main import app


def command(*words: str) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (words, done.exception)
    return done.stdout


assert "Count the kinds of message there are." in command("--help")
assert command("kinds") == f"{len(kinds())} kinds of message\n"
assert json.loads(command("kinds", "--json")) == {"kinds": len(kinds())}
