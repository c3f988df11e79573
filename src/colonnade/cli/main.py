"""The command's door: its subcommands, and what each kind of error exits with."""

import sys
import warnings
from inspect import cleandoc
from typing import Any

import typer

from colonnade.cli import (
    align,
    approve,
    certify,
    certs,
    check,
    coreset,
    demo,
    diagnose,
    doctor,
    evaluate,
    export,
    fit,
    log,
    new,
    party,
    plan,
    policy,
    predict,
    report,
    reproduce,
    server,
    spot_check,
    status,
    summary,
    version,
)
from colonnade.cli.console import say
from colonnade.errors import ColonnadeError

app = typer.Typer(
    name="colonnade",
    help="Learn one model from columns that several organisations hold, and see every byte that was sent.",
    epilog="Start with `colonnade demo`. Exit codes: 0 ok, 2 usage, 3 input, 4 protocol, 5 transport, 6 refused.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS = {
    "demo": demo,
    "plan": plan,
    "fit": fit,
    "coreset": coreset,
    "evaluate": evaluate,
    "predict": predict,
    "certify": certify,
    "diagnose": diagnose,
    "report": report,
    "export": export,
    "summary": summary,
    "spot-check": spot_check,
    "reproduce": reproduce,
    "check": check,
    "align": align,
    "server": server,
    "party": party,
    "approve": approve,
    "status": status,
    "doctor": doctor,
    "version": version,
}
GROUPS = {"new": new, "certs": certs, "log": log, "policy": policy}
for name, module in COMMANDS.items():
    app.command(name)(module.command)
for name, module in GROUPS.items():
    app.add_typer(module.app, name=name)
for group in (app, *(module.app for module in GROUPS.values())):
    for command in group.registered_commands:
        # A docstring's lines are as long as our source's: without this a terminal breaks them twice.
        paragraphs = cleandoc(command.callback.__doc__ or "").split("\n\n") if command.callback else []
        command.help = "\n\n".join(" ".join(each.split()) for each in paragraphs)


def main() -> None:
    """Run the command and exit with its code."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            app()
    except ColonnadeError as error:
        say("\n".join([f"error: {type(error).__name__}", str(error), *getattr(error, "__notes__", [])]))
        sys.exit(error.exit_code)
    except OSError as error:
        say(f"error: {error}")
        sys.exit(1)


def _say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as errors are: whoever uses the command has no use for the line of our source it came from."""
    say(f"warning: {category.__name__}\n{message}")
