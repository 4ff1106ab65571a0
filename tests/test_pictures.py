"""The scoreboard in Datasette, as a program of its own, in a real browser."""

from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.expected_conditions import element_to_be_clickable
from selenium.webdriver.support.ui import WebDriverWait

from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pictures import WIDTH, datasette, show
from tests.runs import make_movie, record_of
from tests.services.browser import Browser
from tests.stored import opened
from tests.waiting import LONGEST, wait_for

pytestmark = pytest.mark.browser
SEEN = ["title", "year", "imdb_rating", "metascore", "metacritic_user_score", "tomatometer"]
SEEN += ["popcornmeter", "critics_mean", "users_mean", "overall"]


def test_title_year_and_scores_are_in_sight_and_lead_to_all_else(
    browser: Browser, tmp_path: Path
) -> None:
    title = "The Lamp of the Long Harbour, Once More"
    with opened(SqliteStore(tmp_path)) as store:
        store.write([record_of(make_movie(n, title=f"{title} {n}")) for n in range(1, 40)])
    with datasette(tmp_path) as url:
        show(browser, f"{url}/movies/scoreboard", WIDTH, 900)
        for column in SEEN:
            header = browser.driver.find_element(By.CSS_SELECTOR, f"th[data-column={column}]")
            assert header.rect["x"] + header.rect["width"] <= WIDTH, column
            assert header.rect["y"] < 600
        browser.driver.get(f"{url}/movies/scoreboard?_search=once+more+17")
        browser.driver.find_element(By.LINK_TEXT, f"{title} 17").click()
        for start in ("/movies/records?title_id=", "/movies/records/", "/movies/scores?record_id="):
            link = element_to_be_clickable((By.CSS_SELECTOR, f"a[href^='{start}']"))
            WebDriverWait(browser.driver, LONGEST).until(link).click()
        wait_for(lambda: "IMDb rating" in browser.driver.page_source)
