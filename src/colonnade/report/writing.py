"""Writing a page, or the sheet for a privacy officer, to a file."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from colonnade import disk
from colonnade.errors import InputError
from colonnade.planning.records import Plan
from colonnade.report import dpia
from colonnade.report.page import MARK, page
from colonnade.run import Run
from colonnade.storage import AnyPath


def write_report(runs: Sequence[Run[Any]], path: AnyPath, plan: Plan | None = None) -> Path:
    """Write the page of the first run, with the others beside it, to an HTML file.

    Parameters
    ----------
    runs : sequence of Run
        The run, and others to compare it with.
    path : str or path-like
        The file; a report that is there is replaced, any other file is refused.
    plan : Plan, optional
        What was planned: what other budgets would buy.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import numpy as np, colonnade as cn, tempfile
    >>> from colonnade.report import write_report
    >>> federation = cn.Federation(cn.split_columns(np.eye(9, 4), np.arange(9.0), [2, 2]))
    >>> run = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(size=20), seed=7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report([run], folder + "/page.html").name
    'page.html'
    """
    return _write(path, page(runs, plan), MARK)


def write_dpia(run: Run[Any], path: AnyPath) -> Path:
    """Write the disclosure sheet for a privacy officer to a Markdown file.

    Parameters
    ----------
    run : Run
        Of which it is.
    path : str or path-like
        The file; a sheet that is there is replaced, any other file is refused.

    Returns
    -------
    Path
        The file.
    """
    return _write(path, dpia.sheet(run), dpia.MARK)


def _write(path: AnyPath, text: str, mark: str) -> Path:
    """Write a file whole or not at all; only its owner can read it, as a run."""
    file = Path(path)
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(8)}")  # nobody can have put a link there
    try:
        if file.exists() and not _begins_with(file, mark):
            raise InputError(f"{file} is there already, and no report: it would be lost. Name another file.")
        disk.write_file(fresh, text.encode())
        disk.replace(fresh, file)
    except OSError as error:
        raise InputError(f"Cannot write {file}: {error}. Name another file.") from error
    return file


def _begins_with(file: Path, mark: str) -> bool:
    with file.open("rb") as opened:
        return opened.read(len(mark.encode())) == mark.encode()
