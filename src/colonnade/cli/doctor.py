"""`colonnade doctor`: what is installed, what is missing, and what for."""

import os
import re
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

import msgspec
import typer

from colonnade.cli.console import JsonFlag, show, show_json
from colonnade.ledger import aligned
from colonnade.run import current_versions


class Finding(msgspec.Struct):
    """One requirement and whether it is met."""

    name: str
    needed_for: str
    installed: str | None


def command(json: JsonFlag = False) -> None:
    """Say what is installed and what is missing. Exits with 3 if a core dependency is missing.

    Example: colonnade doctor
    """
    findings = _findings()
    folder = os.environ.get("COLONNADE_DATA")
    if json:
        show_json({"versions": current_versions(), "packages": findings, "data_folder": folder})
    else:
        _print(findings, folder)
    if any(finding.installed is None and finding.needed_for == "core" for finding in findings):
        raise typer.Exit(3)


def _findings() -> list[Finding]:
    extras = metadata("colonnade").get_all("Provides-Extra") or []
    findings = []
    for requirement in requires("colonnade") or []:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        extra = next((extra for extra in extras if f'extra == "{extra}"' in requirement.replace("'", '"')), "core")
        findings.append(Finding(name, extra, _installed(name)))
    return findings


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _print(findings: list[Finding], folder: str | None) -> None:
    show(", ".join(f"{name} {number}" for name, number in current_versions().items()) + "\n")
    lines = [(finding.name, finding.needed_for, finding.installed or "MISSING") for finding in findings]
    show(aligned([("package", "needed for", "installed"), *lines], numbers=()) + "\n")
    for extra in sorted({finding.needed_for for finding in findings if finding.installed is None} - {"core"}):
        show(f"For {extra}: pip install 'colonnade[{extra}]'")
    state = "not set" if folder is None else folder if Path(folder).is_dir() else f"{folder} (no such folder)"
    show(f"COLONNADE_DATA (data sets for experiments): {state}")
