"""An import and a crawl of series on three sites, by two workers each, beside what the replica has of them."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

from moviecrawler.items import Site
from moviecrawler.replica.collection import Collection
from moviecrawler.sites import SCOREBOARD_KINDS
from tests.crawling import FAST, counts, environment
from tests.services.postgres import execute
from tests.services.replica import series_of

if TYPE_CHECKING:
    from pathlib import Path

    from moviecrawler.replica.process import ReplicaProcess

TITLES = 20
"""Movies beside the series, whose people they share."""
WORKERS = 2
"""Of each site."""
_SPEED = {
    "CATALOGUE_IDLE": "10",
    **FAST,
    "CSV_ENABLED": "0",
    "SITE_BUDGETS": "{}",
    "DOWNLOAD_SLOTS": '{"127.0.0.1": {"delay": 0, "concurrency": 16}}',
}
_SEASON = re.compile(r"/tv/[^/]+/(?:s\d|season-|specials)|/shows-seasons/|/seasons/")


class SeriesCrawl:
    """Commands in processes of their own, on one database and one Redis."""

    def __init__(
        self, folder: Path, replica: ReplicaProcess, collection: Collection, database_url: str, redis_url: str
    ) -> None:
        self.folder, self.replica, self.collection, self.database_url = folder, replica, collection, database_url
        self.longest = 300.0
        """Seconds that a command may take."""
        self.settings = {**_SPEED, "DATABASE_URL": database_url, "REDIS_URL": redis_url}

    def import_all(self) -> None:
        """Fill the catalogue: IMDb's series and their episodes, and Wikidata's ids of every second series on the other sites."""
        crosswalk = self.folder / "wikidata.csv"
        lines = ["imdb,rottentomatoes,metacritic"]
        for number in range(0, self.collection.series.count, 2):
            movies = self.collection.series.title(number).movies
            found = (movies.get(site) for site in ("imdb", "rottentomatoes", "metacritic"))
            lines.append(",".join(str(movie.site_id) if movie else "" for movie in found))
        crosswalk.write_text("\n".join([*lines, ""]), "utf-8")
        for arguments in (["imdb", "--kinds", "series"], ["episodes"], ["wikidata", "--from", str(crosswalk)]):
            self._run(["catalogue", "import", *arguments], 1)

    def crawl_all(self) -> None:
        """Read the sitemaps of series, which tell the catalogue where they are, and fetch what is due, one site after the other."""
        for site in get_args(Site):
            if site != "imdb":
                self._run(["crawl", site, "-a", "list=sitemap-series"], 1)
            self._run(["crawl", site, "-a", "lane=due"], WORKERS)

    def _run(self, arguments: list[str], processes: int) -> None:
        """Run a command in so many processes at once; fail with the log of one that fails."""
        running: list[tuple[subprocess.Popen[bytes], Path]] = []
        env = environment(self.folder, self.replica, **self.settings)
        try:
            for number in range(processes):
                log = self.folder / f"{'-'.join(arguments[:2])}-{number}.log"
                with log.open("wb") as file:
                    command = [sys.executable, "-m", "scrapy", *arguments]
                    running.append((subprocess.Popen(command, env=env, cwd=self.folder, stdout=file, stderr=file), log))
            for process, log in running:
                code = process.wait(self.longest)
                assert code == 0, f"{' '.join(arguments)} ended with {code}:\n{log.read_text()[-3_000:]}"
        finally:
            for process, _ in running:
                process.kill()
                process.wait()

    # --- What it led to -----------------------------------------------------------------------------------------------

    def title_pages(self) -> dict[Site, tuple[int, int]]:
        """Return of how many titles, and of how many seasons among them, each site was asked for pages."""
        found: dict[Site, tuple[int, int]] = {}
        for site in get_args(Site):
            paths = [path for path in counts(self.replica, site)["paths"] if _is_title(path)]
            found[site] = len(paths), sum(bool(_SEASON.search(path)) for path in paths)
        return found

    def differences(self) -> list[str]:
        """Return where what is stored is not the replica's truth: scores, and which records are one title."""
        return [*self._scores(), *self._titles()]

    def _scores(self) -> list[str]:
        stored: dict[tuple[str, str], dict[str, float]] = {}
        for site, site_id, kind, value in execute(
            self.database_url,
            "SELECT r.site::text, r.site_id, s.kind::text, s.value::float FROM records r LEFT JOIN scores s USING (record_id)",
        ):
            scores = stored.setdefault((str(site), str(site_id)), {})
            if kind in SCOREBOARD_KINDS:
                scores[str(kind)] = float(value)  # type: ignore[arg-type]
        wrong = []
        for site in get_args(Site):
            for site_id, movie in series_of(self.collection, site).items():
                if movie.kind == "episode":
                    continue
                true = {score.kind: score.value for score in movie.scores if score.kind in SCOREBOARD_KINDS}
                found = stored.get((site, site_id))
                if found != true:
                    wrong.append(f"{site} {site_id}: {found} is stored, {true} is true")
        return wrong

    def _titles(self) -> list[str]:
        stored = {
            (str(site), str(site_id)): (imdb_id, season)
            for site, site_id, imdb_id, season in execute(
                self.database_url,
                "SELECT r.site::text, r.site_id, coalesce(t.imdb_id, of.imdb_id), t.season"
                " FROM records r JOIN titles t USING (title_id) LEFT JOIN titles of ON of.title_id = t.series_title_id",
            )
        }
        wrong = []
        for number in range(self.collection.series.count):
            whole, imdb_id = self.collection.series.title(number), self.collection.series.imdb_id(number)
            for site, listed in whole.listed.items():
                for movie in (whole.movies[site], *listed):
                    found = stored.get((site, str(movie.site_id)))
                    if found != (imdb_id, movie.season):
                        wrong.append(f"{site} {movie.site_id}: is of {found}, not of {imdb_id}, season {movie.season}")
        return wrong


def _is_title(path: str) -> bool:
    return path.startswith(("/title/", "/tv/", "/m/", "/movie/"))
