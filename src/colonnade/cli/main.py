"""The command's door: its subcommands, and what each kind of error exits with."""

import sys
import warnings
from typing import Annotated, Any

import typer

from colonnade.cli import (
    align,
    approve,
    board,
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
from colonnade.cli.console import complain, show, show_error
from colonnade.cli.help_pages import Command, Group, UsageError, unfolded
from colonnade.errors import ColonnadeError
from colonnade.run import current_versions

app = typer.Typer(
    name="colonnade",
    help="Learn one model from columns that several organisations hold, and see every byte that was sent.",
    epilog="Start with `colonnade demo`. Exit codes: 0 ok, 2 usage, 3 input, 4 protocol, 5 transport, 6 refused.",
    cls=Group,
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
    "board": board,
    "doctor": doctor,
    "version": version,
}
GROUPS = {"new": new, "certs": certs, "log": log, "policy": policy}
for name, module in COMMANDS.items():
    app.command(name)(module.command)
for name, module in GROUPS.items():
    app.add_typer(module.app, name=name, cls=Group)
for group in (app, *(module.app for module in GROUPS.values())):
    for command in group.registered_commands:
        command.cls = Command
        command.help = unfolded(command.callback.__doc__ or "") if command.callback else ""


def _print_version(is_asked: bool) -> None:
    if is_asked:
        show(f"colonnade {current_versions()['colonnade']}")
        raise typer.Exit


VersionFlag = Annotated[
    bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
]


@app.callback()
def colonnade(version: VersionFlag = False) -> None:
    """Let subcommands do the work."""


def main() -> None:
    """Run the command and exit with its code."""
    as_json = "--json" in sys.argv
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            # Where it does not stand alone, wrong usage is raised, and what it exits with is returned.
            sys.exit(app(standalone_mode=not as_json))
    except ColonnadeError as error:
        show_error(type(error).__name__, str(error), getattr(error, "__notes__", []), error.exit_code, json=as_json)
    except OSError as error:
        show_error("", str(error), [], 1, json=as_json)
    except Exception as error:
        if not as_json or not isinstance(error, UsageError):
            raise
        show_error("UsageError", error.format_message(), [], error.exit_code, json=True)


def _say_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Print a warning as errors are: whoever uses the command has no use for the line of our source it came from."""
    complain("warning", category.__name__, str(message))
