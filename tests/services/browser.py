"""A real browser for the tests marked `browser`.

It is Debian's chromium and chromium-driver, or others on the path.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-default-browser-check",
    "--disable-default-apps",
)


class Browser:
    """A browser window, and what it has loaded and complained of."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def resize(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """Show pages in a window of this size, to somebody who prefers this colour scheme."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 900}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        self.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})

    def complaints(self) -> list[str]:
        """Return what was written to the console since the last look."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def hosts(self) -> set[str]:
        """Return whom requests were sent to since the last look."""
        asked = set()
        for entry in self.driver.get_log("performance"):
            message: dict[str, Any] = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if urlsplit(url).scheme not in {"data", "blob", "about", "chrome"}:
                    asked.add(urlsplit(url).netloc.rpartition("@")[2])
        return asked


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser that has seen nothing yet."""
    with opened_browser() as opened:
        yield opened


@contextmanager
def opened_browser() -> Iterator[Browser]:
    """Open a browser."""
    # The import takes a while, for tests that most runs leave out.
    from selenium import webdriver  # noqa: PLC0415

    program = shutil.which("chromium") or shutil.which("google-chrome")
    driver_program = shutil.which("chromedriver")
    wrong = "no browser: apt-get install chromium chromium-driver"
    assert program and driver_program, wrong  # noqa: PT018
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in (*_FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        with webdriver.Chrome(
            options=options, service=webdriver.ChromeService(driver_program)
        ) as driver:
            driver.set_page_load_timeout(30)
            yield Browser(driver)
