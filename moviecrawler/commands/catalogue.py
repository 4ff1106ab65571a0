"""`scrapy catalogue`: which titles there are, what is due on which site, and what a person may decide of it."""

from __future__ import annotations

from moviecrawler.console.command import LazyCommand, option


class Command(LazyCommand):
    """Works on the database that DATABASE_URL names."""

    work = "catalogue.Catalogue"
    arguments = "import imdb|episodes|tmdb|wikidata|csv | status | boost ID… | due [SITE] | review [ID SITE]  [options]"
    summary = "Fill the catalogue of titles, and show or change what is due"
    options = (
        option("--json", action="store_true", help="print JSON"),
        option("--from", dest="origin", metavar="PATH|URL", help="import: a file or folder, or another server"),
        option("--kinds", default="movie", metavar="KIND,…", help="import imdb: which titles (default: movie)"),
        option("--min-votes", default="0", metavar="N", help="import imdb: titles with at least N votes"),
        option("--years", default="", metavar="A-B", help="import imdb: titles of these years, such as 1990-"),
        option("--by", default="1", metavar="N", help="boost: how much; the most boosted are fetched first"),
        option("--limit", default="20", metavar="N", help="due, review: rows to show (default: 20)"),
        option("--accept", action="store_true", help="review: the page is the title's"),
        option("--refuse", action="store_true", help="review: it is not, and won't be tried again"),
        option("--page", metavar="SITE_ID", help="review: of several pages under review, this one"),
    )
