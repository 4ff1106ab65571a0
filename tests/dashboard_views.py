"""Which pages of the dashboard are looked at, in which states of a cluster, and how."""

from typing import Literal, NamedTuple

StageState = Literal["trouble", "order", "away", "empty"]
STATES: tuple[StageState, ...] = ("trouble", "order", "away", "empty")
DONE = "weekly-top250-12"
FAILED = "imdb-imdb-weekly-all-of-the-lists-of-november-with-a-name-of-64"
RUNNING = "metacritic-tv-1"
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
