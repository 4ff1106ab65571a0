"""The dashboard in a real browser, in every state of the cluster.

There is nothing to complain of, nothing cut off, nothing from elsewhere, and forms by keyboard.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.expected_conditions import url_contains
from selenium.webdriver.support.ui import WebDriverWait

from tests.dashboard_stage import stage
from tests.dashboard_views import DONE, FAILED, RUNNING, STATES, VIEWS, StageState, pages_of
from tests.page_texts import text_of
from tests.services.browser import Browser
from tests.waiting import LONGEST, wait_for

pytestmark = pytest.mark.browser
FINDINGS = """
const done = arguments[arguments.length - 1];
const texts = (rule) => rule.nodes.map((node) => rule.id + ": " + node.html.slice(0, 200));
axe.run().then((found) => done(found.violations.flatMap(texts)), (error) => done([`${error}`]));
"""
CUT_OFF = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll("main *, header *, footer *")].filter((e) => {
  const box = e.getBoundingClientRect();
  if (!box.width || !box.height || e.closest(".unseen, .grid, svg, input, select")) return false;
  const scrolled = getComputedStyle(e).overflowX !== "visible" && e.scrollWidth > e.clientWidth + 1;
  return box.right > width + 1 || box.left < -1 || scrolled;
}).map((e) => e.outerHTML.slice(0, 200));
"""
"""Elements that reach beyond the window or that have to be scrolled sideways; but for the grid of
episodes, which may be as wide as it is."""


@contextmanager
def opened(browser: Browser, folder: Path, state: StageState) -> Iterator[str]:
    """Serve a state; nothing makes the browser complain, or ask anybody else."""
    with stage(folder, state) as (url, _):
        browser.complaints()
        browser.hosts()
        yield url
        unavailable = "the server responded with a status of"  # as of a job while Redis is away
        assert [one for one in browser.complaints() if unavailable not in one] == []
        assert browser.hosts() <= {urlsplit(url).netloc}


@pytest.mark.parametrize("state", STATES)
def test_pages_are_whole_and_usable_by_all_in_every_state(
    browser: Browser, tmp_path: Path, state: StageState
) -> None:
    driver = browser.driver
    axe = files("axe_core_python").joinpath("axe.min.js").read_text("utf-8")
    with opened(browser, tmp_path, state) as url:
        for view in VIEWS:
            browser.resize(view.width, scheme=view.scheme)
            for path in pages_of(state).values():
                driver.get(url + path)
                assert driver.find_element(By.TAG_NAME, "h1").is_displayed()
                assert driver.find_elements(By.TAG_NAME, "img") == []  # as a hostile title has one
                # A busy browser has the page before it has laid it out for the width.
                wait_for(
                    lambda: driver.execute_script(CUT_OFF) == [],
                    detail=lambda: [driver.current_url, *driver.execute_script(CUT_OFF)],
                )
                driver.execute_script(axe)
                assert driver.execute_async_script(FINDINGS) == [], (view, path)


def test_the_keyboard_alone_is_enough_and_keeps_its_place(browser: Browser, tmp_path: Path) -> None:
    driver = browser.driver
    browser.resize(1400)

    def press_until(selector: str) -> None:
        wanted = driver.find_element(By.CSS_SELECTOR, selector)
        for _ in range(200):
            if driver.switch_to.active_element == wanted:
                break
            driver.switch_to.active_element.send_keys(Keys.TAB)
        assert driver.switch_to.active_element == wanted, selector
        style = "return getComputedStyle(document.activeElement).outlineStyle"
        assert driver.execute_script(style) == "solid"

    with opened(browser, tmp_path, "trouble") as url:
        driver.get(f"{url}/crawls")
        press_until('a[href="/crawls?paused=1"]')
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        WebDriverWait(driver, LONGEST).until(url_contains("paused=1"))
        press_until(f'a[aria-label="Cancel job {RUNNING}"]')
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        WebDriverWait(driver, LONGEST).until(url_contains("ask=cancel"))
        press_until(".danger")
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        WebDriverWait(driver, LONGEST).until(url_contains("notice=cancelling"))
        driver.get(f"{url}/titles")
        press_until("#q")
        driver.switch_to.active_element.send_keys("Amelie", Keys.ENTER)
        WebDriverWait(driver, LONGEST).until(url_contains("q=Amelie"))
        assert driver.find_elements(By.CSS_SELECTOR, 'a[href="/titles/900001"]')
        driver.get(f"{url}/schedule?again=moviecrawler/{FAILED}")
        press_until('[name="argument.limit"]')
        driver.switch_to.active_element.send_keys("x")
        press_until('button[value="schedule"]')
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        wait_for(lambda: "is not queued" in text_of(driver.page_source))
        limit = driver.find_element(By.NAME, "argument.limit")
        assert limit.get_attribute("value") == "x"
        about = str(limit.get_attribute("aria-describedby")).split()[-1]
        assert "'x' is not a whole number" in driver.find_element(By.ID, about).text


def test_end_of_a_log_is_in_sight(browser: Browser, tmp_path: Path) -> None:
    with opened(browser, tmp_path, "order") as url:
        browser.driver.get(f"{url}/crawls/moviecrawler/{DONE}")
        below = (
            "const l = document.querySelector('.log'); "
            "return l.querySelector('pre').getBoundingClientRect().bottom"
            " - l.getBoundingClientRect().bottom"
        )
        assert abs(browser.driver.execute_script(below)) < 20
        height = "return document.querySelector('.log').scrollHeight"
        assert browser.driver.execute_script(height) > 600
