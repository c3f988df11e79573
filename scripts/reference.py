"""Write the reference pages that are made of the code: docs/reference/messages.md and docs/reference/api.md.

    python scripts/reference.py     (or: make reference)

What they say of a message or of a public name is its docstring: edit that, and run this again. tests/docs fails where a
page is not what this writes.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

import colonnade as cn
from colonnade.catalogue import HANDLERS, kinds
from colonnade.kernels.arrays import Flags, Floats, Rows
from colonnade.messages import Message, disclosures
from colonnade.protocol.session import Handler
from colonnade.sampling import AnySampler
from colonnade.solvers import AnySolver
from colonnade.tasks import AnyTask

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
MADE = "<!-- Made by `make reference` from the docstrings: edit those. -->\n\n"

MESSAGES = """\
# Messages

Every kind that can travel. The list is closed: a decoder knows these kinds and no others.

The server sends requests, and a party answers each with a reply of the kind named there, or with a
[`Refused`](#refused). Who sends what in which round is in [How it works](../explanation/how-it-works.md); how a message
becomes bytes, in [Wire format](wire-format.md).

- *Reveals* is what the receiver learns from a field; a field that is none reveals nothing. By this an owner's policy
  refuses, and the [ledger](ledger.md) tells what was disclosed.
- *Legal* says at which steps of a party's session a request is answered. A request leads to a step of its own; anything
  else is refused.
- *Units* are the numbers that count, the paper's measure: those in fields that reveal something other than the schema,
  where nothing else is said. Over T parties the three rounds of Algorithm 1 carry m + 2mT + 2T units for a size of m: T
  totals, T counts, m drawn rows, mT rows told, mT scores.
- *Bytes* are those of the message without its fields; [what a field takes](wire-format.md#sizes) is added.
- *Fresh* replies are made of new secrets, and differ each time they are asked for.

The requests of each phase; every reply stands below the first request that it answers:
"""

PARTS = """\
## Parts of messages

What fields of messages are made of, where that is more than numbers and texts.
"""

API = """\
# API

`import colonnade as cn`. These are all the public names. Everything else may change without notice.
"""

TYPES: dict[object, str] = {
    type(None): "none",
    bool: "bool",
    int: "int",
    float: "float",
    str: "text",
    bytes: "bytes",
    Floats: "array of float",
    Rows: "array of int",
    Flags: "array of bool",
}


class Group(NamedTuple):
    """Public names that stand together, and what is said of them.

    `members` are the methods that are public, "" for all; None where the class is all that a caller needs.
    """

    title: str
    text: str
    names: tuple[str, ...]
    members: str | None = ""


def registered(union: Any) -> tuple[str, ...]:
    """Name the plug-ins of a registry."""
    return tuple(kind.__name__ for kind in get_args(union))


GROUPS = (
    Group(
        "Parties and federation",
        "See [Prepare a party's data](../how-to/prepare-data.md), [Work on big tables](../how-to/big-tables.md), "
        "[Align records](../how-to/align-records.md), "
        "[Connect machines](../how-to/connect-machines.md), "
        "[Hold out rows](../how-to/hold-out-rows.md) and [What is disclosed](../explanation/what-is-disclosed.md).",
        (
            "Party",
            "Query",
            "DaskEngine",
            "split_columns",
            "Federation",
            "AlignmentReport",
            "serve_party",
            "Policy",
            "HoldOut",
            "SplitBy",
        ),
    ),
    Group(
        "Preparation",
        "What an owner asks of the columns of a table as it is.",
        ("Prepare", "Number", "Category", "Date"),
        None,
    ),
    Group(
        "Tasks",
        "What to learn. See [Choose a penalty](../how-to/choose-a-penalty.md) and "
        "[Weights and scales](../how-to/weights-and-scales.md).",
        registered(AnyTask),
        "cost",
    ),
    Group(
        "Samplers",
        "How a coreset is agreed on. See [Coresets](../explanation/coresets.md), "
        "[Choose a size](../how-to/choose-size.md) and [Privacy](../explanation/privacy.md).",
        registered(AnySampler),
        None,
    ),
    Group(
        "Solvers",
        "How a model is learned on a coreset. See [Saga](../explanation/saga.md), "
        "[DistDim](../explanation/distdim.md), [Fewer bytes](../explanation/wire.md) and "
        "[Training without showing rows](../explanation/privacy.md#training-without-showing-rows).",
        registered(AnySolver),
        None,
    ),
    Group(
        "Results",
        "See [Keep a model and hand it over](../how-to/keep-a-model.md), "
        "[Export a model](../how-to/export-a-model.md), "
        "[Read standard errors](../how-to/read-standard-errors.md), "
        "[Reuse a coreset](../how-to/reuse-a-coreset.md) and [Ledger](ledger.md).",
        (
            "Run",
            "Coreset",
            "LinearModel",
            "ClassificationModel",
            "KMeansModel",
            "ClassPredictions",
            "ClassificationReport",
            "RegressionReport",
            "ClusteringReport",
            "Summary",
            "Coefficient",
            "Ledger",
            "skops_types",
        ),
    ),
    Group(
        "Planning and diagnosis",
        "See [Plan a job](../how-to/plan-a-job.md), [Choose a size](../how-to/choose-size.md), "
        "[Assumptions](../explanation/assumptions.md) and [Certify a run](../how-to/certify-a-run.md).",
        ("Plan", "Certificate", "Findings", "diagnose", "Diagnosis", "theory_size", "TheorySize"),
    ),
    Group(
        "scikit-learn estimators",
        "For use in one process. They pass scikit-learn's estimator checks, none excluded.",
        ("ColonnadeRegressor", "ColonnadeClassifier", "ColonnadeKMeans"),
        "fit, predict",
    ),
    Group(
        "Errors and warnings",
        "The tree of errors, and the command's exit codes, are in [Errors](errors.md).",
        tuple(name for name in cn.__all__ if name.endswith(("Error", "Warning"))),
    ),
)


def messages_page() -> str:
    """Describe every kind of message, phase by phase, each request followed by its reply."""
    phases: dict[str, list[type[Message]]] = {}
    for kind in in_order():
        phases.setdefault(kind.phase, []).append(kind)
    contents = [f"- [{phase}](#phase-{phase}): {requests(of)}" for phase, of in phases.items()]
    sections = [f"## Phase: {phase}\n\n" + "\n".join(map(kind_section, of)) for phase, of in phases.items()]
    parts = PARTS + "".join(f"\n{part_section(part)}" for part in parts_of_messages())
    return MADE + "\n".join([MESSAGES, *contents, "", *sections, parts])


def requests(of: list[type[Message]]) -> str:
    """Link to the requests among some kinds; where there are none, to all."""
    return ", ".join(link(kind) for kind in of if kind.reply is not None) or ", ".join(map(link, of))


def in_order() -> list[type[Message]]:
    """List the kinds as the registry does, each reply after its first request."""
    found: dict[type[Message], None] = {}
    for handler in HANDLERS:
        found |= dict.fromkeys(kind for kind in (handler.request, handler.request.reply) if kind is not None)
    return [*found, *sorted(kinds() - found.keys(), key=lambda kind: kind.__name__)]


def kind_section(kind: type[Message]) -> str:
    """Describe a kind: what it is for, when it may come, its fields."""
    facts = "".join(f"- {fact}\n" for fact in facts_of(kind))
    reveals = disclosures(kind)
    hints = get_type_hints(kind)
    lines = "".join(f"| `{name}` | {plain(hints[name])} | {reveals[name]} |\n" for name in kind.__struct_fields__)
    table = f"\n| field | type | reveals |\n|---|---|---|\n{lines}" if lines else ""
    return f"### `{kind.__name__}`\n\n{prose(kind)}\n\n{facts}{table}"


def facts_of(kind: type[Message]) -> Iterator[str]:
    """Tell what the registry knows of a kind."""
    handler = next((handler for handler in HANDLERS if handler.request is kind), None)
    if handler is not None and kind.reply is not None:
        yield f"request, answered by {link(kind.reply)}"
        yield f"legal {legal(handler)}; leads to the step *{handler.then}*"
        if handler.solver is not None:
            yield f"of the solver `{handler.solver}`"
    if asked := [link(handler.request) for handler in HANDLERS if handler.request.reply is kind]:
        yield f"reply to {either(asked)}{'; fresh' if kind.fresh else ''}"
    if kind.passes_on is not Message.passes_on:
        yield f"passes on {told(kind.passes_on)}"
    if kind.units is not Message.units:
        yield f"units: {told(kind.units)}"
    empty = [kind.__name__, *(None for _ in kind.__struct_fields__)]
    yield f"bytes: {len(msgspec.msgpack.encode(empty)) - len(kind.__struct_fields__)}"


def legal(handler: Handler) -> str:
    """Say at which steps a request may come, in the order in which steps are reached."""
    if handler.after is None:
        return "at any step after the hello"
    reached = dict.fromkeys(each.then for each in HANDLERS)
    steps = [*sorted(handler.after - reached.keys()), *(step for step in reached if step in handler.after)]
    return f"at the step {either([f'*{step}*' for step in steps])}"


def told(method: object) -> str:
    """Take what a method's docstring says it counts or names: all but the verb and the full stop."""
    return (inspect.getdoc(method) or "").partition("\n")[0].partition(" ")[2].rstrip(".")


def parts_of_messages() -> list[type[msgspec.Struct]]:
    """List the structs that fields are made of, in the order in which they are met."""
    found: dict[type[msgspec.Struct], None] = {}

    def look(hint: Any) -> None:
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct) and hint not in found:
            found.setdefault(hint)
            for inner in get_type_hints(hint).values():
                look(inner)
        for inner in get_args(hint):
            look(inner)

    for kind in in_order():
        for name in kind.__struct_fields__:
            look(get_type_hints(kind)[name])
    return list(found)


def part_section(part: type[msgspec.Struct]) -> str:
    """Describe a struct that travels inside messages."""
    hints = get_type_hints(part)
    lines = "".join(f"| `{name}` | {plain(hints[name])} |\n" for name in part.__struct_fields__)
    text = prose(part).partition("\n\nParameters\n")[0]
    return f"### `{part.__name__}`\n\n{text}\n\n| field | type |\n|---|---|\n{lines}"


def plain(hint: Any) -> str:
    """Write a type in plain words."""
    if hint in TYPES:
        return TYPES[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return plain(inner[0])
    if origin is Literal:
        return either([f"`{value}`" for value in inner])
    if origin in (Union, UnionType):
        return either([plain(each) for each in inner])
    if origin is tuple:
        return f"list of {plain(inner[0])}"
    if isinstance(hint, EnumType):
        names: Mapping[str, Any] = hint.__members__
        return either([f"{value} ({name.lower()})" for name, value in names.items()])
    return link(hint)


def either(choices: Sequence[str]) -> str:
    """Join choices: a, b or c."""
    return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))


def link(kind: type) -> str:
    """Link to the section on a kind, or on a part of one."""
    return f"[`{kind.__name__}`](#{kind.__name__.lower()})"


def prose(thing: object) -> str:
    """Give a docstring as Markdown: what stands in single or double backticks there is code here."""
    return (inspect.getdoc(thing) or "").replace("``", "`")


def api_page() -> str:
    """List the public names group by group, and leave to Sphinx what their docstrings say."""
    placed = [name for group in GROUPS for name in group.names]
    if sorted(placed) != cn.__all__:
        odd = sorted(set(placed).symmetric_difference(cn.__all__))
        raise SystemExit(
            f"{odd} must stand in just one of the GROUPS of {Path(__file__).name}, as in colonnade.__all__."
        )
    return MADE + "\n".join([API, *map(group_section, GROUPS)])


def group_section(group: Group) -> str:
    """Describe a group: a table to read anywhere, then the directives that make the site's pages."""
    lines = "".join(f"| `{name}` | {summary(getattr(cn, name))} |\n" for name in group.names)
    directives = "\n".join(directive(name, group.members) for name in group.names)
    table = f"| name | what it is |\n|---|---|\n{lines}"
    return f"## {group.title}\n\n{group.text}\n\n{table}\n```{{eval-rst}}\n{directives}```\n"


def summary(thing: object) -> str:
    """Take the first paragraph of a docstring, for a table."""
    return prose(thing).partition("\n\n")[0].replace("\n", " ").replace("|", "\\|")


def directive(name: str, members: str | None) -> str:
    """Ask Sphinx for a function, or for a class with its public methods, be they inherited from one of ours."""
    thing = getattr(cn, name)
    if not inspect.isclass(thing):
        return f".. autofunction:: colonnade.{name}\n"
    foreign = [base.__name__ for base in thing.__mro__ if not base.__module__.startswith("colonnade")]
    options = [] if members is None else [f":members: {members}".rstrip()]
    if members == "":  # with names before it, Sphinx would list what is inherited beside them
        options.append(f":inherited-members: {', '.join(foreign)}")
    return "\n   ".join([f".. autoclass:: colonnade.{name}", *options]) + "\n"


def pages() -> dict[Path, str]:
    """Make every generated page."""
    return {REFERENCE / "messages.md": messages_page(), REFERENCE / "api.md": api_page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
