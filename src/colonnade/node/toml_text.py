"""Names and values as TOML writes them, whatever is in them: a file that we start must say what we meant."""

import json
import re
from collections.abc import Mapping
from typing import Any

BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_key(name: str) -> str:
    """Write a name on the left of an equals sign: quoted where it has more than letters, digits and dashes."""
    return name if BARE.fullmatch(name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Write text, numbers, truth, lists of them, or a table on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(name)} = {toml_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:_}"  # with the separators that people read
    # JSON's text and truth are TOML's. What cannot be seen is escaped: some of it TOML forbids, and some deceives.
    written = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08X}" for each in written)


def toml_line(name: str, value: Any) -> str:
    """Write one line: a name and its value."""
    return f"{toml_key(name)} = {toml_value(value)}"
