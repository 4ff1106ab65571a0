"""Takes pictures of all pages in all states: `python -m tests.dashboard.pictures FOLDER [STATE]`.

It takes them at both widths, in light and in dark, by Debian's chromium. `overview.png` is the one
that the READMEs show.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.dashboard_stage import stage
from tests.dashboard_views import STATES, VIEWS, pages_of
from tests.services.browser import Browser, opened_browser


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
        for state in STATES:
            if state not in states:
                continue
            with (
                tempfile.TemporaryDirectory() as data,
                stage(Path(data), state) as (url, _),
            ):
                for view in VIEWS:
                    browser.resize(view.width, scheme=view.scheme)
                    for name, path in pages_of(state).items():
                        browser.driver.get(url + path)
                        file = folder / f"{state}-{name}-{view.width}-{view.scheme}.png"
                        height = take(browser, file)
                        print(f"{file.name}: {height} px")
                if state == "trouble":
                    browser.resize(1200)
                    browser.driver.get(url)
                    take(browser, folder / "overview.png", 1520)


if __name__ == "__main__":
    take_all(Path(sys.argv[1]), sys.argv[2:] or list(STATES))
