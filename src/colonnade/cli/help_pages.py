"""How `--help` looks: flags take no value, and brackets are brackets."""

from inspect import cleandoc
from typing import Any

import typer
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

# What is raised of wrong usage; typer exports its children only.
UsageError: Any = next(each for each in typer.BadParameter.__mro__ if each.__name__ == "UsageError")


class Command(TyperCommand):
    """A subcommand."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Give its arguments and options, flags without the type of a value."""
        return _without_bool(super().get_params(ctx))


class Group(TyperGroup):
    """Subcommands under one name."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Give its options, flags without the type of a value."""
        return _without_bool(super().get_params(ctx))


def unfolded(docstring: str) -> str:
    """Make a docstring a help page: a paragraph is one line, which the terminal breaks, and brackets are no markup."""
    paragraphs = cleandoc(docstring).split("\n\n")
    return "\n\n".join(escape(" ".join(each.split())) for each in paragraphs)


def _without_bool(params: list[Any]) -> list[Any]:
    for each in params:
        if getattr(each, "is_flag", False):
            each.metavar = ""
    return params
