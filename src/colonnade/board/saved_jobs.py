"""What can be started from a server's board: the [[job]] tables of federation.toml, and plans that lie beside it."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from colonnade.board.words import title_of
from colonnade.errors import ColonnadeError, InputError
from colonnade.node.files import FederationFile
from colonnade.number_words import in_bytes
from colonnade.planning.records import Plan
from colonnade.server_queue import queued_job

# So many files beside federation.toml are looked at, none larger.
MAX_FILES, MAX_PLAN_BYTES = 50, 32 << 20


def job_facts(table: dict[str, Any]) -> dict[str, str]:
    """Say what a job is, as far as its table tells."""
    kinds = {name: table.get(name) for name in ("task", "sampler", "solver")}
    words = {name: str(each.get("kind", "")) for name, each in kinds.items() if isinstance(each, dict)}
    how = [words.get("sampler", ""), words.get("solver", "")]
    how += [f"{name} {table[name]}" for name in ("plan", "model", "run", "to") if isinstance(table.get(name), str)]
    out = table.get("out")
    return {
        "title": title_of(str(table.get("do", "a job that cannot be read")), words.get("task")),
        "how": ", ".join(filter(None, how)),
        "out": out if isinstance(out, str) else "",
    }


def saved_jobs(file: FederationFile, path: Path) -> list[dict[str, Any]]:
    """List the [[job]] tables, each known by a digest of it."""
    folder = path.resolve().parent
    found = []
    for number, table in enumerate(file.job, start=1):
        facts = job_facts(table)
        is_there = bool(facts["out"]) and (folder / facts["out"]).exists()
        found.append({"key": key_of(table), "number": number, **facts, "replaces": facts["out"] if is_there else ""})
    return found


def saved_plans(path: Path) -> list[dict[str, str]]:
    """List the plans that lie beside federation.toml."""
    found = []
    for name in _plan_files(path):
        file = path.resolve().parent / name
        if (plan := _read(file, file.stat().st_mtime_ns)) is not None:
            how = f"{plan.chosen.sampler}, {plan.chosen.solver}"
            about = f"about {in_bytes(plan.bytes)} in all"
            found.append({"name": name, "title": title_of("fit", _tag(plan.task)), "how": how, "about": about})
    return found


def table_of_job(file: FederationFile, path: Path, key: str) -> dict[str, Any]:
    """Find a [[job]] table by its digest, and require one that can be done."""
    table = next((table for table in file.job if key_of(table) == key), None)
    if table is None:
        raise InputError("That job is no longer in the file. Look at the board again.")
    queued_job(table, path)
    return table


def table_of_plan(path: Path, name: str) -> dict[str, Any]:
    """Make a job of a plan beside federation.toml; its run goes to a folder that is not there yet."""
    folder = path.resolve().parent
    if name not in _plan_files(path):
        raise InputError(f"No plan {name!r} lies beside {path.name}. Look at the board again.")
    plan = Plan.load(folder / name)
    stem, number = f"{Path(name).stem}-run", 1
    while (folder / (out := stem if number == 1 else f"{stem}-{number}")).exists():
        number += 1
    table = {"do": "fit", "task": msgspec.to_builtins(plan.task), "plan": name, "out": out}
    queued_job(table, path)
    return table


def key_of(table: dict[str, Any]) -> str:
    """Give a digest of a table."""
    return hashlib.sha256(msgspec.json.encode(table, order="sorted")).hexdigest()[:32]


def _plan_files(path: Path) -> list[str]:
    """Name the plain files that may be plans: by listing them, so that no name leads elsewhere."""
    files = sorted(path.resolve().parent.glob("*.json"))[:MAX_FILES]
    plain = [file for file in files if not file.is_symlink() and file.is_file()]
    return [file.name for file in plain if file.stat().st_size <= MAX_PLAN_BYTES]


@lru_cache(maxsize=2 * MAX_FILES)
def _read(file: Path, _changed: int) -> Plan | None:
    try:
        return Plan.load(file)
    except ColonnadeError:
        return None


def _tag(task: object) -> str | None:
    return str(task.__struct_config__.tag) if isinstance(task, msgspec.Struct) else None
