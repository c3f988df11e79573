import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import browser_trial as trial
import colonnade as cn
from colonnade.report.page import MARK, MOST_BYTES, page

VOID = {"meta", "br", "img"}


class Reader(HTMLParser):
    """What a page is made of, as a browser would see it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


@pytest.fixture(scope="module", params=["regression", "classification", "clustering"])
def made(request: pytest.FixtureRequest) -> tuple[cn.Run[Any], str]:
    run = getattr(trial, request.param)()
    return run, page([run])


def test_a_page_has_all_sections_in_their_order_and_unique_ids(made: tuple[cn.Run[Any], str]) -> None:
    _, text = made
    sections = re.findall(r'<section id="(\w+)"', text)
    assert sections == ["rounds", "bytes", "weights", "model", "quality", "remarks", "disclosure", "repeat"]
    ids = read(text).ids
    assert len(ids) == len(set(ids))
    assert text.startswith(MARK)


def test_a_page_allows_one_style_and_one_script_and_loads_nothing(made: tuple[cn.Run[Any], str]) -> None:
    _, text = made
    reader = read(text)
    assert "default-src &#39;none&#39;" in text
    assert text.count("sha256-") == 2
    assert (reader.tags.count("script"), reader.tags.count("style")) == (1, 1)
    assert reader.attributes.isdisjoint({"style", "src", "onclick", "onload", "onerror", "action"})
    assert not re.findall(r"https?://", text.partition("</head>")[2])


def test_the_headline_says_what_how_good_and_what_was_sent(made: tuple[cn.Run[Any], str]) -> None:
    _, text = made
    lead = re.sub(r"<[^>]+>", " ", text.partition("<h1")[2].partition("</section>")[0]).replace("\xa0", " ")
    assert "of 2,000 rows" in lead
    assert "400 rows that were held out" in lead
    assert "a model learned from all rows has" in lead
    assert "certificate" in lead
    assert "that sending every cell would take" in lead
    assert not re.search(r"\de[-+]?\d", lead)


def test_what_rounding_leaves_of_zero_is_shown_as_zero() -> None:
    text = page([trial.regression()])
    model = text.partition('id="model"')[2].partition("</section>")[0]
    cells = re.findall(r"party3_1</td>(.*?)</tr>", model)
    assert re.findall(r">([^<]+)</td>", cells[-1])[0] == "0"
    assert not re.search(r">-?\d[\d.,]*e-?\d+<", text)


def test_several_runs_and_a_plan_make_a_frontier() -> None:
    X, y = trial.columns(8000)
    federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
    task = cn.Regression()
    plan = federation.plan(task, budget_bytes=20_000)
    run = federation.fit(task, plan=plan)
    runs = [
        run.with_findings(federation.evaluate(run.model)),
        federation.fit(task, sampler=cn.UniformSampling(size=50)),
    ]
    text = page(runs, plan)
    frontier = text.partition('<section id="frontier"')[2].partition("</section>")[0]
    assert "1 of 2 runs were not evaluated" in frontier
    assert "this run" in frontier
    assert frontier.count("planned: ") >= len(plan.frontier)
    assert "The plan expected" in frontier


def test_a_coreset_without_a_model_has_a_page() -> None:
    X, y = trial.columns()
    run = cn.Federation(cn.split_columns(X, y, [3, 3])).coreset(cn.Regression(), cn.ImportanceSampling(size=50))
    text = page([run])
    assert "agreed on a coreset of 50 of their 2,000 rows" in text
    assert '<section id="model"' not in text


def test_names_are_text_wherever_they_stand() -> None:
    text = page([trial.hostile()])
    reader = read(text)
    assert (reader.tags.count("script"), reader.tags.count("style")) == (1, 1)
    assert set(reader.tags).isdisjoint({"img", "b", "iframe", "object", "base", "form"})
    assert not {name for name in reader.attributes if name.startswith("on")}
    assert "{{ 7 * 7 }}" in text
    assert not re.search(r"[\u202a-\u202e\u2066\u2067\x00\x1b]", text.replace("\u2068", ""))
    assert len(text.encode()) <= MOST_BYTES
    assert max(map(len, re.findall(r">([^<]*)<", text.partition("<main")[2].partition("<script")[0]))) < 4500


def test_a_page_of_many_parties_messages_columns_and_clusters_stays_small(tmp_path: Path) -> None:
    import time

    run = trial.huge()
    file = run.report(tmp_path / "page.html")
    text = file.read_text()
    assert len(text.encode()) <= MOST_BYTES
    assert re.search(r"The first \d+ of 1,000 lines are shown", text), "and where all is"
    assert "The figure is left out" not in text
    with trial.browser() as opened:
        shown = opened.new_page()
        start = time.monotonic()
        shown.goto(file.as_uri(), wait_until="load")
        assert shown.evaluate("document.querySelectorAll('table').length") > 5
        assert time.monotonic() - start < 2


def test_a_page_replaces_a_page_and_nothing_else(tmp_path: Path) -> None:
    X, y = trial.columns()
    run = cn.Federation(cn.split_columns(X, y, [3, 3])).coreset(cn.Regression(), cn.UniformSampling(size=50))
    file = run.report(tmp_path / "page.html")
    assert run.report(file) == file
    other = tmp_path / "data.csv"
    other.write_text("a,b\n")
    with pytest.raises(cn.InputError, match="would be lost"):
        run.report(other)
    assert other.read_text() == "a,b\n"
    with pytest.raises(cn.InputError, match="Name another file"):
        run.report(tmp_path / "nowhere" / "page.html")
