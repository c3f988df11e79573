"""The reproduction as one Markdown file and one self-contained HTML page, from stored trials alone."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape

from colonnade.paper.experiments import EXPERIMENTS
from colonnade.paper.tables import LEGEND, layouts
from colonnade.paper.trials import Trial, cells
from colonnade.paper.variants import switches

TITLE = "Coresets for vertical federated learning: the paper's experiments, run again"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 85rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; font-size: 13px; }
.wide { overflow-x: auto; margin: .5rem 0 1.5rem; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid #ddd; }
td, th { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
.words th, .words td { text-align: left; vertical-align: top; white-space: normal; }
img { max-width: 100%; }
h3 { margin-bottom: .2rem; }
"""
SWITCH_HEADER = ("switch", "as-written", "as-run", "why")


def markdown(trials: Sequence[Trial]) -> str:
    """Write all tables in Markdown, without figures, which do not fit a text file."""
    lines = [SWITCH_HEADER, ("---",) * len(SWITCH_HEADER), *switches()]
    parts = [
        f"# {TITLE}",
        f"Data: {_data(trials)}.",
        *(layout.markdown() for layout in layouts(cells(trials))),
        LEGEND,
        "\n".join(f"- {remark}" for remark in _remarks(trials)),
        "## The variants",
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def html(trials: Sequence[Trial], pictures: Mapping[str, bytes]) -> str:
    """Write all tables, and the pictures that `figures` made of the same trials, as a page that needs nothing else."""
    sections = [
        layout.html() + (_picture(layout.title, pictures[layout.title]) if layout.title in pictures else "")
        for layout in layouts(cells(trials))
    ]
    head = "".join(f"<th>{escape(name)}</th>" for name in SWITCH_HEADER)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in switches())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(TITLE)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(TITLE)}</h1>"
        f"<p>Data: {escape(_data(trials))}.</p><p>{escape(LEGEND)}</p>"
        f"<ul>{''.join(f'<li>{escape(remark)}</li>' for remark in _remarks(trials))}</ul>{''.join(sections)}"
        f'<h2>The variants</h2><table class="words"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</body></html>\n"
    )


def _data(trials: Sequence[Trial]) -> str:
    return "; ".join(dict.fromkeys(trial.data for trial in trials)) or "none yet"


def _remarks(trials: Sequence[Trial]) -> list[str]:
    """List what is to be remarked, each once, with the experiments it concerns."""
    concerned: dict[str, list[str]] = {}
    for name in dict.fromkeys(trial.experiment for trial in trials):
        for remark in EXPERIMENTS[name].remarks:
            concerned.setdefault(remark, []).append(name)
    return [f"{', '.join(names)}: {remark}" for remark, names in concerned.items()]


def _picture(title: str, png: bytes) -> str:
    return f'<img alt="{escape(title)}" src="data:image/png;base64,{b64encode(png).decode()}">'
