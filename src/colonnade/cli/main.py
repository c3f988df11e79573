"""The command's door: its subcommands, and what each kind of error exits with."""

import sys

import typer

from colonnade.cli import coreset, demo, diagnose, doctor, evaluate, fit, predict, report, version
from colonnade.cli.console import say
from colonnade.errors import ColonnadeError, InputError, PolicyRefusedError, ProtocolError, TransportError

EXIT_CODES = {InputError: 3, ProtocolError: 4, TransportError: 5, PolicyRefusedError: 6}

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
    "fit": fit,
    "coreset": coreset,
    "evaluate": evaluate,
    "predict": predict,
    "diagnose": diagnose,
    "report": report,
    "doctor": doctor,
    "version": version,
}
for name, module in COMMANDS.items():
    app.command(name)(module.command)


def main() -> None:
    """Run the command and exit with its code."""
    try:
        app()
    except ColonnadeError as error:
        say(f"error: {type(error).__name__}\n{error}")
        sys.exit(next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
    except OSError as error:
        say(f"error: {error}")
        sys.exit(1)
