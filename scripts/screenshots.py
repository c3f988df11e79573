"""Take the picture of the demo's report that README shows: `make demo`, then this. Needs Chromium."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

REPORT = Path("demo-output/report.html")
PICTURE = Path("docs/report.png")
# What a person sees first, and the page's first figure.
SIZE = {"width": 1000, "height": 1440}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def main() -> None:
    """Open the page as a person would, and keep what is seen."""
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None or not REPORT.exists():
        sys.exit(f"This needs chromium, and {REPORT}, which `make demo` writes.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]  # a dict will do
        page.goto(REPORT.resolve().as_uri())
        page.screenshot(path=PICTURE)
        browser.close()


if __name__ == "__main__":
    main()
