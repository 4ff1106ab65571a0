"""The dashboard in a real browser, with scripts: nothing to complain of, nothing from elsewhere, and forms by clicking."""

from __future__ import annotations

import os
import re
import urllib.parse
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_contains
from selenium.webdriver.support.ui import Select, WebDriverWait

from moviecrawler.dashboard import site
from tests.dashboard.operated import HOSTILE, LOGIN, PER_DAY, Operated, contrast, luminance
from tests.services.browser import Browser
from tests.waiting import wait_for

pytestmark = pytest.mark.browser
PAGES = [*site.PAGES, "/titles/900001"]
PATIENCE = 30.0
BATCH = 32
"""FRONTIER_BATCH, by default."""


@pytest.fixture(autouse=True)
def logged_in(world: Operated, browser: Browser) -> None:
    """Open the first page with name and password, which the browser then sends by itself."""
    browser.driver.get(f"http://{LOGIN[0]}:{LOGIN[1]}@{world.node.url.removeprefix('http://')}/")
    browser.complaints()
    browser.hosts()


@pytest.fixture(autouse=True)
def content(logged_in: None, world: Operated, browser: Browser) -> object:  # noqa: ARG001 - comes first
    """Nothing that a test does makes the browser complain, or ask anybody else."""
    yield
    assert browser.complaints() == []
    assert browser.hosts() <= {world.node.url.removeprefix("http://")}


def text(browser: Browser, selector: str) -> str:
    return str(browser.driver.find_element(By.CSS_SELECTOR, selector).text)


@pytest.mark.parametrize("path", PAGES)
def test_page_loads_and_fits_on_a_phone(world: Operated, browser: Browser, path: str) -> None:
    driver = browser.driver
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    )
    try:
        driver.get(world.node.url + path)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert driver.find_element(By.TAG_NAME, "h1").is_displayed()
    styled = driver.execute_script("return getComputedStyle(document.querySelector('header')).display")
    assert styled == "flex"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(world: Operated, browser: Browser, scheme: str) -> None:
    driver = browser.driver
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    try:
        driver.get(world.node.url + "/crawls")
        ground = _rgb(driver.execute_script("return getComputedStyle(document.body).backgroundColor"))
        assert (luminance(ground) > 0.5) == (scheme == "light")
        for selector in ("body", "thead th", "a", ".state", "small", ".primary"):
            colours = driver.execute_script(
                "const s = getComputedStyle(document.querySelector(arguments[0]));"
                "return [s.color, s.backgroundColor === 'rgba(0, 0, 0, 0)' ? '' : s.backgroundColor]",
                selector,
            )
            behind = _rgb(colours[1]) if colours[1] else ground
            assert contrast(_rgb(colours[0]), behind) >= 4.5, (selector, colours)
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def _rgb(colour: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", colour)[:3]]


def test_figures_go_on_by_themselves_and_are_those_of_the_api(world: Operated, browser: Browser) -> None:
    driver = browser.driver
    driver.get(world.node.url + "/")
    driver.execute_script("window.stillHere = true")

    def used() -> int:
        found = re.search(r"Requests today\s+([\d,]+) of ([\d,]+)", text(browser, ".card"))
        assert found
        assert found[2] == f"{PER_DAY:,}"
        return int(found[1].replace(",", ""))

    def output() -> int:
        runs = world.node.get("progress.json").json["runs"]
        return int(next(run["used_today"] for run in runs if run["run"] == "running"))

    first = used()
    wait_for(lambda: used() > first, PATIENCE)
    # A worker gives back what it was handed out and did not send, which is a batch at the most.
    assert used() <= output() + BATCH
    assert driver.execute_script("return window.stillHere")
    button = driver.find_element(By.CSS_SELECTOR, "#refresh button")
    button.click()
    assert "It does not refresh." in text(browser, "#refresh")
    button.click()
    wait_for(lambda: "It refreshes by itself." in text(browser, "#refresh"), PATIENCE)


def test_job_is_scheduled_and_cancelled_by_clicking(world: Operated, browser: Browser) -> None:
    driver = browser.driver
    waiting = WebDriverWait(driver, PATIENCE)
    fillers = [
        world.node.schedule("imdb", "moviecrawler", {"FRONTIER_RUN": "running"}, ids="tt0000001") for _ in range(4)
    ]
    driver.get(world.node.url + "/crawls")
    Select(driver.find_element(By.ID, "spider")).select_by_visible_text("metacritic (moviecrawler)")
    driver.find_element(By.ID, "arguments").send_keys("ids=movie/dune\nlimit=1")
    driver.find_element(By.ID, "settings").send_keys("FRONTIER_RUN=clicked")
    priority = driver.find_element(By.ID, "priority")
    priority.clear()
    priority.send_keys("-9")
    driver.find_element(By.CSS_SELECTOR, "button[value=schedule]").click()
    waiting.until(url_contains("notice=scheduled"))
    assert text(browser, ".notice") == "The job is queued."
    job = urllib.parse.urlsplit(driver.current_url).path.rpartition("/")[2]
    [pending] = [pending for pending in world.node.jobs("pending") if pending["id"] == job]
    assert pending["args"] == {"ids": "movie/dune", "limit": "1"}
    assert (pending["spider"], pending["settings"], pending["priority"]) == (
        "metacritic",
        {"FRONTIER_RUN": "clicked"},
        -9,
    )
    assert "pending" in text(browser, "#job-state")
    driver.find_element(By.CSS_SELECTOR, "button[value=cancel]").click()
    waiting.until(url_contains("notice=cancelled"))
    assert text(browser, ".notice") == "The job was still pending, and is taken out of the queue."
    assert job not in {pending["id"] for pending in world.node.jobs("pending")}
    for filler in fillers:
        world.node.post("cancel.json", project="moviecrawler", job=filler, signal="KILL")


def test_search_finds_a_movie_by_keyboard_alone(world: Operated, browser: Browser) -> None:
    driver = browser.driver
    [(title_id, title)] = world.ask(
        "SELECT title_id, title FROM scoreboard WHERE title_id < 900000 AND imdb_rating IS NOT NULL ORDER BY title_id LIMIT 1"
    )
    driver.get(world.node.url + "/")
    focused = driver.switch_to.active_element
    for _ in range(20):
        focused.send_keys(Keys.TAB)
        focused = driver.switch_to.active_element
        if focused.get_attribute("id") == "find":
            break
    outline = driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    focused.send_keys(title, Keys.ENTER)
    WebDriverWait(driver, PATIENCE).until(url_contains("/titles?q="))
    link = driver.find_element(By.CSS_SELECTOR, f'a[href="/titles/{title_id}"]')
    assert link.text == title
    link.send_keys(Keys.ENTER)
    WebDriverWait(driver, PATIENCE).until(url_contains(f"/titles/{title_id}"))
    assert text(browser, "h1") == title
    assert "IMDb rating" in text(browser, "table")


def test_hostile_title_is_a_text(world: Operated, browser: Browser) -> None:
    browser.driver.get(world.node.url + "/titles/900001")
    assert text(browser, "h1") == HOSTILE
    assert browser.driver.find_elements(By.TAG_NAME, "img") == []


def test_page_works_without_scripts(world: Operated, browser: Browser) -> None:
    driver = browser.driver
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver.get(world.node.url + "/titles")
        driver.find_element(By.ID, "q").send_keys("tt99990001", Keys.ENTER)
        WebDriverWait(driver, PATIENCE).until(url_contains("q=tt99990001"))
        driver.find_element(By.CSS_SELECTOR, "td a, th a").click()
        WebDriverWait(driver, PATIENCE).until(url_contains("/titles/900001"))
        driver.find_element(By.CSS_SELECTOR, "button[value=boost]").click()
        WebDriverWait(driver, PATIENCE).until(url_contains("notice=boosted"))
        assert text(browser, ".notice").startswith("Boosted:")
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert world.ask("SELECT boost > 0 FROM title_sites WHERE title_id = 900001 AND site = 'imdb'") == [(True,)]


def test_overview_is_what_the_picture_in_the_readme_shows(world: Operated, browser: Browser, tmp_path: Path) -> None:
    """`PICTURE=moviecrawler/dashboard/overview.png pytest -m browser -k picture` takes it anew."""
    browser.driver.set_window_size(1200, 900)
    browser.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    browser.driver.get(world.node.url)
    assert browser.driver.save_screenshot(os.environ.get("PICTURE") or str(tmp_path / "overview.png"))
    assert "needs attention" in text(browser, "main")
