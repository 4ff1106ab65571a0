"""The dashboard in a real browser.

There is nothing to complain of, nothing cut off, nothing from elsewhere, and forms by clicking.
"""

import os
import re
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_contains
from selenium.webdriver.support.ui import WebDriverWait

from moviecrawler.dashboard import site
from tests.dashboard.operated import LOGIN, Operated, contrast, luminance
from tests.services.browser import Browser
from tests.waiting import LONGEST, wait_for

pytestmark = pytest.mark.browser
PAGES = [
    *site.PAGES,
    "/crawls?schedule=new",
    "/crawls/moviecrawler/{done}",
    "/titles/900001",
    "/titles/{known}",
]
CUT_OFF = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll("main *, header *, footer *")].filter((e) => {
  const box = e.getBoundingClientRect();
  if (!box.width || !box.height || e.closest(".unseen, .grid, svg")) return false;
  const scrolled = getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1;
  return box.right > width + 1 || box.left < -1 || scrolled;
}).map((e) => e.outerHTML.slice(0, 200));
"""
"""Elements that reach beyond the window or that have to be scrolled sideways; but for the grid of
episodes, which may be as wide as it is."""


@pytest.fixture(autouse=True)
def opened(world: Operated, browser: Browser) -> object:
    """Open the first page with name and password.

    Nothing that a test does makes the browser complain, or ask anybody else.
    """
    browser.driver.get(f"http://{LOGIN[0]}:{LOGIN[1]}@{world.node.url.removeprefix('http://')}/")
    browser.complaints()
    browser.hosts()
    yield
    assert browser.complaints() == []
    assert browser.hosts() <= {world.node.url.removeprefix("http://")}


def text(browser: Browser, selector: str) -> str:
    return str(browser.driver.find_element(By.CSS_SELECTOR, selector).text)


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_cut_off_on_any_page(world: Operated, browser: Browser, width: int) -> None:
    driver = browser.driver
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 1000}
    most_sites = (
        "SELECT title_id FROM records WHERE title_id < 900000"
        " GROUP BY title_id ORDER BY count(*) DESC, title_id LIMIT 1"
    )
    [(known,)] = world.ask(most_sites)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in PAGES:
            driver.get(world.node.url + path.format(done=world.done, known=known))
            assert driver.find_element(By.TAG_NAME, "h1").is_displayed()
            assert driver.find_elements(By.TAG_NAME, "img") == []  # as a hostile title has one
            # A busy browser has the page before it has laid it out for the width.
            wait_for(
                lambda: driver.execute_script(CUT_OFF) == [],
                detail=lambda: [driver.current_url, *driver.execute_script(CUT_OFF)],
            )
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(world: Operated, browser: Browser, scheme: str) -> None:
    driver = browser.driver
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        for path, selectors in (
            ("/crawls?schedule=new", ("body", "thead th", "a", ".state", "small", ".primary")),
            ("/titles/900001", (".c0", ".c1", "figcaption")),
        ):
            driver.get(world.node.url + path)
            ground = _rgb(
                driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            )
            assert (luminance(ground) > 0.5) == (scheme == "light")
            for selector in selectors:
                colours = driver.execute_script(
                    "const s = getComputedStyle(document.querySelector(arguments[0]));"
                    "return [s.color, "
                    "s.backgroundColor === 'rgba(0, 0, 0, 0)' ? '' : s.backgroundColor]",
                    selector,
                )
                behind = _rgb(colours[1]) if colours[1] else ground
                assert contrast(_rgb(colours[0]), behind) >= 4.5, (selector, colours)
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def _rgb(colour: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", colour)[:3]]


def test_end_of_a_log_is_in_sight(world: Operated, browser: Browser) -> None:
    browser.driver.get(f"{world.node.url}/crawls/moviecrawler/{world.done}")
    below = (
        "const l = document.querySelector('.log'); "
        "return l.querySelector('pre').getBoundingClientRect().bottom"
        " - l.getBoundingClientRect().bottom"
    )
    assert abs(browser.driver.execute_script(below)) < 20
    assert browser.driver.execute_script("return document.querySelector('.log').scrollHeight") > 600


def test_search_finds_a_movie_by_keyboard_alone(world: Operated, browser: Browser) -> None:
    driver = browser.driver
    [(title_id, title)] = world.ask(
        "SELECT title_id, title FROM scoreboard"
        " WHERE title_id < 900000 AND imdb_rating IS NOT NULL ORDER BY title_id LIMIT 1"
    )
    driver.get(world.node.url + "/titles")
    while driver.switch_to.active_element.get_attribute("id") != "find":
        driver.switch_to.active_element.send_keys(Keys.TAB)
    assert (
        driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
        == "solid"
    )
    driver.switch_to.active_element.send_keys(title, Keys.ENTER)
    WebDriverWait(driver, LONGEST).until(url_contains("/titles?q="))
    driver.find_element(By.CSS_SELECTOR, f'a[href="/titles/{title_id}"]').send_keys(Keys.ENTER)
    WebDriverWait(driver, LONGEST).until(url_contains(f"/titles/{title_id}"))
    assert text(browser, "h1") == title


def test_overview_is_what_the_picture_in_the_readme_shows(
    world: Operated, browser: Browser, tmp_path: Path
) -> None:
    """`PICTURE=moviecrawler/dashboard/overview.png pytest -m browser -k picture` takes it anew."""
    # As if the titles had been read in the course of a day.
    spread = (
        "UPDATE records"
        " SET scraped_at = scraped_at - mod(title_id, 23) ^ 1.3 * interval '20 min'"
        " WHERE title_id < 900000 RETURNING 1"
    )
    assert world.ask(spread)
    wait_for(lambda: re.search(r"last day: (\d+, ){0,15}[1-9]", world.page("/")))
    browser.driver.set_window_size(1200, 900)
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.driver.get(world.node.url)
    assert browser.driver.save_screenshot(
        os.environ.get("PICTURE") or str(tmp_path / "overview.png")
    )
    assert "needs attention" in text(browser, "main")
