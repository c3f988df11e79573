"""Pages in a real Chromium, from a file: what a reader does with them, and what they must not do."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import browser_trial as trial

KINDS = ("regression", "classification", "clustering", "hostile")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with trial.browser() as opened:
        yield opened


@pytest.fixture(scope="module", params=KINDS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = getattr(trial, request.param)()
    written: Path = run.report(tmp_path_factory.mktemp("page") / f"{request.param}.html")
    return written


class Opened:
    """A page that was opened, and what it said and asked for."""

    def __init__(self, chromium: Any, file: Path, width: int = 1100, scheme: str = "light") -> None:
        self.page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri(), wait_until="load")
        self.asked = [address for address in self.asked if address != file.as_uri()]

    def close(self) -> None:
        self.page.close()
        assert self.said == []
        assert self.asked == []


def background(page: Any) -> str:
    return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))


def column(page: Any, table: str, place: int) -> list[str]:
    cells = f"[...document.querySelector('{table} table').tBodies[0].rows].map(row => row.cells[{place}].textContent)"
    return [str(text) for text in page.evaluate(cells)]


def test_a_table_is_sorted_by_mouse_and_keyboard(chromium: Any, file: Path) -> None:
    opened = Opened(chromium, file)
    page, table = opened.page, "#disclosure"
    first = column(page, table, 3)
    button = page.locator(f"{table} th button").nth(3)
    button.click()
    head = page.locator(f"{table} th").nth(3)
    assert head.get_attribute("aria-sort") == "ascending"
    numbers = [int(text.replace(",", "")) for text in column(page, table, 3)]
    assert numbers == sorted(numbers)
    button.focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    numbers = [int(text.replace(",", "")) for text in column(page, table, 3)]
    assert numbers == sorted(numbers, reverse=True)
    assert sorted(column(page, table, 3)) == sorted(first)
    opened.close()


def test_the_theme_follows_the_reader_and_can_be_switched(chromium: Any, file: Path, tmp_path: Path) -> None:
    found = {}
    for scheme in ("light", "dark"):
        opened = Opened(chromium, file, scheme=scheme)
        before = background(opened.page)
        opened.page.screenshot(path=trial.kept(f"{file.stem}-{scheme}.png", tmp_path), full_page=True)
        opened.page.locator("#theme").click()
        found[scheme] = (before, background(opened.page))
        opened.close()
    light, dark = found["light"]
    assert light != dark
    assert found["dark"] == (dark, light)


def test_a_phone_never_scrolls_sideways(chromium: Any, file: Path, tmp_path: Path) -> None:
    opened = Opened(chromium, file, width=320)
    opened.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    wide = opened.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    opened.page.screenshot(path=trial.kept(f"{file.stem}-320.png", tmp_path), full_page=True)
    opened.close()
    assert wide == [320, 320]


def test_it_prints_light_without_controls_and_with_whole_tables(chromium: Any, file: Path, tmp_path: Path) -> None:
    opened = Opened(chromium, file, scheme="dark")
    pdf = opened.page.pdf(path=trial.kept(f"{file.stem}.pdf", tmp_path), format="A4")
    assert pdf.startswith(b"%PDF")
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert background(opened.page) == "rgb(255, 255, 255)"
    assert not opened.page.locator("#theme").is_visible()
    cut = (
        "[...document.querySelectorAll('.scroll')].filter(box => getComputedStyle(box).overflowY !== 'visible').length"
    )
    assert opened.page.evaluate(cut) == 0
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(chromium: Any, file: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not here")
    opened = Opened(chromium, file, scheme=scheme)
    opened.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    opened.page.evaluate("scrollTo(0, 0)")
    found = axe.Axe().run(opened.page).response["violations"]
    serious = [
        (each["id"], [node["html"][:200] for node in each["nodes"][:3]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
    assert serious == []
    opened.page.close()


def test_the_skip_link_comes_first_and_headings_are_in_order(chromium: Any, file: Path) -> None:
    opened = Opened(chromium, file)
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.className") == "skip"
    levels = opened.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(each => +each.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    landmarks = opened.page.evaluate(
        "['main', 'nav', 'header', 'footer'].map(tag => document.querySelectorAll(tag).length)"
    )
    assert landmarks == [1, 1, 1, 1]
    opened.close()
