"""TOML files that people write, read into a type; what is wrong is said by section, with the nearest known name."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from colonnade.errors import InputError

T = TypeVar("T")
TOML_TYPES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a table",
    "str": "text",
}


def read_toml(path: Path, kind: type[T], advice: Callable[[str], str | None]) -> T:
    """Read a file; `advice` answers problems that it knows better, given in msgspec's words."""
    try:
        content = path.read_bytes()
        return msgspec.toml.decode(content, type=kind)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read {path}: {error}. Pass the path of a TOML file.") from error
    except msgspec.ValidationError as error:
        plain = msgspec.toml.decode(content)
        found = advice(str(error)) or misnamed(kind, plain) or mistyped(_with_key(str(error), kind, plain))
        raise InputError(f"{path}: {found}") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path} is not TOML: {error}. {_corrected(str(error))}") from error


def _with_key(problem: str, kind: Any, content: dict[str, Any]) -> str:
    """Write the name of an entry into msgspec's words, which have [...] for it: the first that is wrong by itself."""
    path, is_entry, _ = problem.partition("[...]")
    names = path.rpartition("$.")[2].split(".")
    entries: Any = content if is_entry else {}
    for name in names:
        entries = entries.get(name) if isinstance(entries, dict) else None
    for key, entry in (entries or {}).items() if isinstance(entries, dict) else ():
        alone: Any = {key: entry}
        for name in reversed(names):
            alone = {name: alone}
        try:
            msgspec.convert(alone, kind)
        except msgspec.ValidationError as error:
            if "[...]" in str(error):
                return str(error).replace("[...]", f".{key}")
    return problem


def mistyped(problem: str) -> str:
    """Say in TOML's words what msgspec says of a value."""
    found = re.fullmatch(r"Expected `([^`]+)`, got `([^`]+)` - at `\$\.?([^`]+)`", problem)
    if found is None:
        return f"{problem}. Correct that value."
    expected = " or ".join(TOML_TYPES.get(name, name) for name in found[1].split(" | ") if name != "null")
    place = re.sub(r"(\w+)\[(\d+)\]\.", lambda at: f"[[{at[1]}]] number {int(at[2]) + 1}, ", found[3])
    return f"{place} must be {expected}, not {TOML_TYPES.get(found[2], found[2])}. Correct that value."


def _corrected(problem: str) -> str:
    if "twice" in problem or "overwrite" in problem:  # tomllib's words for what is there already
        return "Write an option once; a table that comes several times has two brackets, [[party]]."
    return "Correct that line."


def misnamed(kind: Any, content: object, path: str = "") -> str | None:
    """Say what is unknown or missing first in content that was read for a type, and what to write; None if nothing is.

    `path` is where the content stands, such as "job".
    """
    return next(
        _misnamed(inspect.type_info(kind), content, _Place(f"[{path}]" if path else "the top level", path)), None
    )


@dataclass(frozen=True)
class _Place:
    """A section: how it is shown, the names that lead to it, and of which [[table]] it is, if of one."""

    shown: str
    path: str
    table: str = ""

    def inside(self, name: str) -> "_Place":
        path = f"{self.path}.{name}".removeprefix(".")
        return _Place(f"{self.table}[{path}]", path, self.table)

    def item(self, number: int) -> "_Place":
        shown = f"{self.table}[[{self.path}]] number {number}"
        return _Place(shown, self.path, f"{shown}, ")


def _misnamed(info: inspect.Type, value: object, place: _Place) -> Iterator[str]:
    kinds = [each for each in getattr(info, "types", (info,)) if not isinstance(each, inspect.NoneType)]
    structs = [each for each in kinds if isinstance(each, inspect.StructType)]
    if isinstance(value, dict) and structs:
        yield from _in_section(structs, value, place)
    elif len(kinds) != 1:
        return
    elif isinstance(value, list) and isinstance(kinds[0], inspect.ListType | inspect.VarTupleType):
        for number, each in enumerate(value, 1):
            yield from _misnamed(kinds[0].item_type, each, place.item(number))
    elif isinstance(value, dict) and isinstance(kinds[0], inspect.DictType):
        for name, each in value.items():
            yield from _misnamed(kinds[0].value_type, each, place.inside(name))
    elif isinstance(value, str) and isinstance(kinds[0], inspect.LiteralType) and value not in kinds[0].values:
        yield f"{place.table}{place.path} cannot be {_quoted(value)}. {_instead(value, kinds[0].values, _quoted)}"


def _in_section(structs: list[inspect.StructType], value: dict[str, Any], place: _Place) -> Iterator[str]:
    """Look at a section that is one of these; a field of it says which, where there are several."""
    by_tag, field = {each.tag: each for each in structs}, structs[0].tag_field
    if field is not None and field not in value:
        yield f"{place.shown} lacks `{field}`. Write one of {', '.join(map(_quoted, by_tag))}."
    elif field is not None and value[field] not in list(by_tag):
        unknown = value[field]
        yield f"{place.shown} knows no {field} = {_quoted(unknown)}. {_instead(unknown, by_tag, _quoted)}"
    else:
        yield from _in_struct(structs[0] if field is None else by_tag[value[field]], value, place)


def _in_struct(struct: inspect.StructType, value: dict[str, Any], place: _Place) -> Iterator[str]:
    # By either name, where one is kept from before; the other is the one to write.
    known = {name: each for each in struct.fields for name in (each.name, each.encode_name)}
    written = [name for name in (struct.tag_field, *(each.name for each in struct.fields)) if name is not None]
    for name in value:
        if struct.forbid_unknown_fields and name not in known and name != struct.tag_field:
            yield f"{place.shown}{_of_kind(struct)} has no option `{name}`. {_instead(name, written, '`{}`'.format)}"
    for each in struct.fields:
        if each.required and not {each.name, each.encode_name} & set(value):
            yield f"{place.shown}{_of_kind(struct)} lacks `{each.name}`. Add it."
    for name in value:
        if name in known:
            yield from _misnamed(known[name].type, value[name], place.inside(name))


def _of_kind(struct: inspect.StructType) -> str:
    return "" if struct.tag_field is None else f" with {struct.tag_field} = {_quoted(struct.tag)}"


def _instead(unknown: object, known: Iterable[Any], shown: Callable[[str], str]) -> str:
    """Name what is nearest; only where nothing is near, all there is."""
    names = [str(name) for name in known]
    if near := get_close_matches(str(unknown).lower(), names, n=2):
        return f"Did you mean {' or '.join(map(shown, near))}?"
    return f"Write one of {', '.join(map(shown, names))}."


def _quoted(value: object) -> str:
    return f'"{value}"'
