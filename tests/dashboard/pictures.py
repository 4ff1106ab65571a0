"""Takes pictures of all pages in all states: `python -m tests.dashboard.pictures FOLDER [STATE]`.

It takes them at both widths, in light and in dark, by Debian's chromium. `overview.png` is the one
that the READMEs show.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

from tests.dashboard.stage import DONE, FAILED, RUNNING, STATES, StageState, stage
from tests.services.browser import Browser, opened_browser

PAGES = {
    "overview": "/",
    "crawls": "/crawls",
    "crawls-problems": "/crawls?result=problems&find=1",
    "job": f"/crawls/moviecrawler/{DONE}",
    "job-failed": f"/crawls/moviecrawler/{FAILED}",
    "job-running": f"/crawls/moviecrawler/{RUNNING}",
    "job-cancel": f"/crawls/moviecrawler/{RUNNING}?ask=cancel",
    "run": "/runs/imdb/weekly-47",
    "run-letters": "/runs/imdb/weekly-47?ask=letters",
    "run-drop": "/runs/imdb/weekly-47?ask=drop",
    "schedule": "/schedule",
    "schedule-form": f"/schedule?again=moviecrawler/{FAILED}",
    "titles": "/titles",
    "titles-found": "/titles?q=harbor&kind=movie&sort=metascore",
    "title": "/titles/900001",
    "title-of-three-sites": "/titles/12",
}
"""The path of each page."""
FEW = ("overview", "crawls", "job", "run", "schedule", "titles", "title")
"""Those that differ where nothing is in trouble."""


class View(NamedTuple):
    """How a page is looked at."""

    width: int
    scheme: str


VIEWS = [View(width, scheme) for width in (1400, 390) for scheme in ("light", "dark")]


def pages_of(state: StageState) -> dict[str, str]:
    """Return the pages that are worth a look in a state."""
    return PAGES if state == "trouble" else {name: PAGES[name] for name in FEW}


def look(browser: Browser, view: View) -> None:
    """Have the browser show pages in a width and a scheme."""
    size = {"width": view.width, "height": 900, "deviceScaleFactor": 1, "mobile": view.width < 1000}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    features = [{"name": "prefers-color-scheme", "value": view.scheme}]
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})


def take(browser: Browser, path: Path, height: int | None = None) -> int:
    """Take a picture of the whole page, or of its top; return the page's height."""
    import base64  # noqa: PLC0415

    box: dict[str, Any] = browser.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})
    size = box["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
    options = {"captureBeyondViewport": True, "clip": clip}
    found = browser.driver.execute_cdp_cmd("Page.captureScreenshot", options)
    path.write_bytes(base64.b64decode(found["data"]))
    return int(size["height"])


def take_all(folder: Path, states: Iterator[str] | list[str]) -> None:
    """Take all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with opened_browser() as browser:
        for state in get_args(StageState):
            if state not in states:
                continue
            with (
                tempfile.TemporaryDirectory() as data,
                stage(Path(data), state) as (url, _),
            ):
                for view in VIEWS:
                    look(browser, view)
                    for name, path in pages_of(state).items():
                        browser.driver.get(url + path)
                        file = folder / f"{state}-{name}-{view.width}-{view.scheme}.png"
                        height = take(browser, file)
                        print(f"{file.name}: {height} px")
                if state == "trouble":
                    look(browser, View(1200, "light"))
                    browser.driver.get(url)
                    take(browser, folder / "overview.png", 1520)


if __name__ == "__main__":
    take_all(Path(sys.argv[1]), sys.argv[2:] or list(STATES))
