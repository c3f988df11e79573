"""The board in a real browser: it watches runs of three party processes, and shows whatever they say as text.

Screenshots go to the folder that BOARD_SHOTS names, or else to the test's own folder.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from board_trial import MARKUP, server_files, stop_server, write_status
from colonnade.node.runs import RunStatus
from network_trial import BANK_FIT, Trial, write_party_file

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not here")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not here")
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path(CHROMIUM).exists(), reason="no Chromium at /usr/bin/chromium"),
    # Playwright and asyncio leave these behind when they end.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]
# On a machine that does much else, processes take long to start.
PATIENCE = 120.0
FITS: list[dict[str, object]] = [BANK_FIT | {"solver": {"kind": "saga"}}, BANK_FIT | {"out": "second"}]


class Watched:
    """A browser whose console and requests are looked at."""

    def __init__(self, browser: Any, shots: Path) -> None:
        self._browser = browser
        self._shots = shots
        self.errors: list[str] = []
        self.requests: set[str] = set()

    def page(self, **options: Any) -> Any:
        page = self._browser.new_context(**options).new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.on("console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(dialog.message))
        page.on("request", lambda request: self.requests.add(request.url))
        return page

    def log_in(self, told: dict[str, str], **options: Any) -> Any:
        page = self.page(**options)
        page.goto(told["url"])
        page.fill("#token", told["token"])
        page.press("#token", "Enter")
        page.wait_for_url(told["url"])
        page.get_by_text("live", exact=True).wait_for()
        page.locator("section:not([hidden])").first.wait_for()
        return page

    def shoot(self, page: Any, name: str) -> None:
        page.screenshot(path=str(self._shots / f"{name}.png"), full_page=True)

    def check_access(self, page: Any) -> None:
        """Require no serious finding of axe-core, which is put into the page by the browser, past the page's policy."""
        found = axe.Axe().run(page).response
        assert len(found["passes"]) > 10, "nothing was looked at"
        assert [each["id"] for each in found["violations"] if each["impact"] in ("serious", "critical")] == []


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("BOARD_SHOTS", tmp_path / "shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def watched(shots: Path) -> Iterator[Watched]:
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        try:
            yield Watched(browser, shots)
        finally:
            browser.close()


def started(trial: Trial, file: Path) -> dict[str, str]:
    process = trial.start("board", str(file), "--listen", "127.0.0.1:0", "--json")
    assert process.stdout is not None
    told: dict[str, str] = json.loads(process.stdout.readline())
    return told


@contextmanager
def server_stopped(folder: Path) -> Iterator[None]:
    try:
        yield
    finally:
        stop_server(folder)


def test_a_board_watches_runs_go_from_waiting_to_done_cancelled_and_refused(tmp_path: Path, watched: Watched) -> None:
    with Trial(tmp_path, FITS, wait_seconds=PATIENCE) as trial, server_stopped(tmp_path):
        write_party_file(tmp_path, "bank", trial.port, approve="ask", policy={"level": "usual"}, wait_seconds=PATIENCE)
        server, party = (started(trial, file) for file in (trial.federation_file, trial.party_files["bank"]))
        _see_the_login_page(watched, server)
        page = watched.log_in(server)
        page.get_by_text("The server is not running.").wait_for()
        page.get_by_role("button", name="Start").first.click()
        page.get_by_text("Waiting for bank, telephone, shop to connect.").wait_for()
        watched.shoot(page, "server-waiting")
        for name in trial.names:
            trial.start_party(name, "--json")
        owner = watched.log_in(party, color_scheme="dark")
        owner.get_by_role("button", name="Approve").wait_for(timeout=1000 * PATIENCE)
        page.get_by_text("Waiting for the owner of bank to approve.").wait_for()
        watched.check_access(owner)
        watched.check_access(page)
        watched.shoot(owner, "party-asked")
        owner.get_by_role("button", name="Approve").press("Enter")
        owner.locator("#ask-yes").press("Enter")
        page.get_by_role("button", name="Open report").wait_for(timeout=1000 * PATIENCE)
        page.get_by_text("All 3 parties are connected. Nothing is under way.").wait_for()
        assert page.locator("#runs .badge").all_inner_texts() == ["done"]
        watched.shoot(page, "server-done")
        with page.context.expect_page() as opened:
            page.get_by_role("button", name="Open report").click()
        assert "egression" in opened.value.locator("body").inner_text()
        assert opened.value.evaluate("self.origin") == "null", "a report has no origin here"
        assert [each.context.cookies() for each in (page, owner)] == [[], []], "all ports would be sent them"
        _cancel_the_second(page, watched)
        _refuse_with_markup(page, owner, watched)
        phone = watched.log_in(server, viewport={"width": 320, "height": 640}, color_scheme="dark")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 320
        watched.check_access(phone)
        watched.shoot(phone, "server-phone")
        allowed = tuple(told["url"] for told in (server, party))
        outside = {url for url in watched.requests if not url.startswith((*allowed, "data:"))}
        assert outside == set()
        assert [error for error in watched.errors if "403" not in error] == []  # the wrong token's


def _see_the_login_page(watched: Watched, told: dict[str, str]) -> None:
    page = watched.page()
    page.goto(told["url"])
    watched.check_access(page)
    page.fill("#token", "not the token")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("This is not the token that this board printed").wait_for()
    assert page.url.endswith("/login")
    watched.shoot(page, "login-refused")
    page.context.close()


def _cancel_the_second(page: Any, watched: Watched) -> None:
    page.get_by_role("button", name="Start").nth(1).click()
    page.get_by_role("button", name="Cancel run").click(timeout=1000 * PATIENCE)
    page.get_by_role("button", name="Keep it running").click()
    page.get_by_role("button", name="Cancel run").click()
    page.get_by_role("button", name="Cancel the run").click()
    page.get_by_text("cancelled by whoever runs the server").first.wait_for()
    assert page.locator("#runs .badge").all_inner_texts() == ["cancelled", "done"]
    watched.shoot(page, "server-cancelled")


def _refuse_with_markup(page: Any, owner: Any, watched: Watched) -> None:
    page.get_by_role("button", name="Start").nth(1).click()
    owner.get_by_role("button", name="Refuse").click(timeout=1000 * PATIENCE)
    owner.fill("#reason", MARKUP)
    owner.get_by_role("button", name="Refuse the run").click()
    page.get_by_text(f"its owner said no: {MARKUP}").first.wait_for()
    assert page.locator("img").count() == 0
    watched.shoot(page, "server-refused")
    watched.shoot(owner, "party-refused")


def test_a_name_full_of_markup_is_shown_as_text(tmp_path: Path, watched: Watched) -> None:
    """Our own certificates have plain names only; federation.toml takes any, with certificates of another maker."""
    path = server_files(tmp_path, ("bank", MARKUP))
    ran = RunStatus("fit-1", "fit", MARKUP, MARKUP, MARKUP, "2026-11-18T08:00:00+00:00", "failed", error=MARKUP)
    ran.bytes_sent = {MARKUP: 1200}
    write_status(tmp_path, ran)
    with Trial(tmp_path, []) as trial:
        path = server_files(tmp_path, ("bank", MARKUP))
        page = watched.log_in(started(trial, path))
        page.locator("#parties").get_by_role("heading", name=MARKUP).wait_for()
        page.locator("#runs summary").click()
        assert MARKUP in page.locator("#runs").inner_text()
        assert page.locator("img").count() == 0
        watched.check_access(page)
        watched.shoot(page, "server-markup")
        assert page.locator("h1").inner_text() == "Server of 2 parties"
        page.reload()
        page.get_by_text("live", exact=True).wait_for()
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        assert page.evaluate("[sessionStorage.length, document.cookie]") == [0, ""]
        page.goto(page.url.removesuffix("login"))
        page.wait_for_url("**/login")
    assert watched.errors == []
