"""`scrapy match`: which IMDb title each film of a list is."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """Prints one JSON object for each film: its IMDb id if it is sure, how sure it is, and why."""

    work = "match.Match"
    arguments = "RECORDS [--against TITLES]"
    summary = "Print the IMDb title of each film of a list, one JSON object a line"
    options = (option("--against", metavar="TITLES", help="IMDb titles; without it, those of the catalogue"),)

    def long_desc(self) -> str:
        """Return what the files hold."""
        return (
            "Find the IMDb titles of the films of a list. RECORDS and TITLES are CSV with a header, or JSON Lines, in UTF-8,"
            " with the columns site, site_id, title, original_title, year, release_date, runtime_minutes, directors (with |"
            " between them) and votes; other_titles (with | between them) and kind may be there too. An empty cell is"
            " unknown. The site of TITLES is imdb, their site_id the IMDb id. Without TITLES, the titles of the catalogue"
            " are taken, in the database that DATABASE_URL names."
        )
