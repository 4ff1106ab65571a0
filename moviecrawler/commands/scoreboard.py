"""`scrapy scoreboard`: one row a title with every site's scores."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """The scores of the database that DATABASE_URL names, else of `movies.csv`, joined over the sites."""

    work = "scoreboard.Scoreboard"
    arguments = "[--kind movie|series|season|episode] [--format table|csv|json] [--limit N]"
    summary = "Print one row a title with every site's scores"
    options = (
        option(
            "--kind",
            choices=["movie", "series", "season", "episode"],
            help="print these only; default: all but seasons. IMDb's rating of a season is the mean of its episodes",
        ),
        option("--format", choices=["table", "csv", "json"], default="table", help="default: table"),
        option("--limit", type=int, metavar="N", help="print the first N rows only"),
    )
