"""The notebook of the examples runs from start to end, and shows tables."""

import os
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"


@pytest.mark.filterwarnings("default")  # of Jupyter's own, about its folders
def test_the_notebook_runs_and_shows_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not here")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not here")
    pytest.importorskip("ipykernel", reason="ipykernel is not here")
    source = str(NOTEBOOK.parents[1] / "src")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "it is kept without what it shows"
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    tables = [output.data["text/html"] for output in shown if "text/html" in output.get("data", {})]
    assert len(tables) == 5
    assert all("<table>" in table and "<script" not in table for table in tables)
    assert "page.html is below 1.5 MB: True" in shown[-1].text
