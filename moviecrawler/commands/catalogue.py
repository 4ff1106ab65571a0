"""`scrapy catalogue`: import titles, show and boost due ones, decide on matches under review."""

from __future__ import annotations

import signal
import sys
from argparse import SUPPRESS, ArgumentTypeError
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import msgspec
from scrapy.commands import ScrapyCommand
from tqdm import tqdm

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.credentials import has_userinfo
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.service_urls import is_http_url
from moviecrawler.basics.texts import fold, printable
from moviecrawler.commands.base import (
    JSON,
    NONE,
    BaseCommand,
    Option,
    option,
    print_json,
    table,
    whole_number,
)
from moviecrawler.items import TitleKind
from moviecrawler.options import check_settings
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.politeness.budgets import site_budget
from moviecrawler.sites import ID_SITE, SITES
from moviecrawler.sites.hosts import datasets_url, user_agent
from moviecrawler.sites.ids import parse_title_id

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from datetime import date

    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.file_source import FileSource
    from moviecrawler.database.connection import Database
    from moviecrawler.sites import Site

_DAY_SECONDS = 86_400
_MAX_NAMED = 3
"""Unknown ids that an error names."""


class Command(BaseCommand, ScrapyCommand):
    """Fill the catalogue of titles, and show or change what is due.

    It works on the database that DATABASE_URL names. `scrapy catalogue ACTION -h` has the options
    of an action.
    """

    arguments = (
        "import imdb|episodes|tmdb|wikidata|csv | status | boost ID… | due [SITE]"
        " | review [ID SITE]  [options]"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add a parser for each action.

        Scrapy's own options may come before or after the action.
        """
        super().add_options(parser)
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        for name, (run, options) in _ACTIONS.items():
            own = actions.add_parser(
                name, prog=f"scrapy catalogue {name}", conflict_handler="resolve"
            )
            ScrapyCommand.add_options(self, own)
            # A default would overwrite an option before the action.
            for argument in own._actions:  # noqa: SLF001
                argument.default = SUPPRESS
            for declared in options:
                own.add_argument(*declared.names, **declared.parameters)
            own.set_defaults(run=run)

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.catalogue.store import open_catalogue

        check_settings(self.settings)
        with closing(open_catalogue(self.settings)) as database:
            opts.run(self, database, opts)


# --- Arguments ------------------------------------------------------------------------------------


def _weight(text: str) -> float:
    with suppress(ValueError):
        if 0 < float(text) < 1e9:  # noqa: PLR2004 - well within a Postgres real
            return float(text)
    raise ArgumentTypeError(f"{text!r} is not a number above 0")


def _years(text: str) -> tuple[int | None, int | None]:
    first, dash, last = text.partition("-")
    if not (first or last):
        raise ArgumentTypeError(f"{text!r}; give such as 1990-1999, 1990- or 2001")
    begin = whole_number(first) if first else None
    if last:
        return begin, whole_number(last)
    return begin, None if dash else begin


def _kinds(text: str) -> frozenset[str]:
    kinds = frozenset(text.split(","))
    if unknown := kinds.difference(get_args(TitleKind)):
        raise ArgumentTypeError(
            f"names {min(unknown)!r}; there are {', '.join(get_args(TitleKind))}"
        )
    return kinds


def _origin(text: str) -> str:
    """Return a path, or a URL that something can be fetched from.

    It is stored as a part of the source's name.
    """
    if has_userinfo(text):
        raise ArgumentTypeError(
            "the URL seems to contain credentials and would be stored; download the files and pass "
            "their path"
        )
    if "://" in text and not is_http_url(text):
        raise ArgumentTypeError(
            f"{text!r}; give a path, or a URL such as https://example.org/files"
        )
    return text


# --- Import ---------------------------------------------------------------------------------------


def _import(command: BaseCommand, database: Database, opts: argparse.Namespace) -> None:
    # Ctrl-C ends the process at once, even while the database loads a part. The next import goes on
    # from there.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    source = _source(opts, command.settings)
    # There is one table of episodes, whatever they were read from.
    name = (
        source.name
        if opts.origin is None or opts.source == "episodes"
        else f"{source.name} {opts.origin}"
    )
    source.fetch_politely(
        user_agent(command.settings),
        partial(print, file=sys.stderr),
        obey_robots=command.settings.getbool("ROBOTSTXT_OBEY"),
    )
    with tqdm(
        desc=name, unit=" rows", unit_scale=True, file=sys.stderr, disable=not sys.stderr.isatty()
    ) as bar:
        made = source.import_into(database, name, bar.update)
    if made is None:
        print(f"{name} has not changed since the last import")
    else:
        changes = f"{made.added:,} rows added, {made.changed:,} changed, {made.removed:,} removed"
        print(
            f"{name}: {changes}, {made.ids:,} ids on other sites, {source.damaged:,} rows left out"
        )
        if made.unknown and opts.source == "csv":
            command.fail(f"{made.unknown:,} rows have TMDB ids of no known title, and no IMDb id")
        if not source.rows_read:
            command.fail(f"{name} has no rows that can be imported")
    if source.remark:
        print(printable(source.remark), file=sys.stderr)
    if source.damaged:
        command.fail(f"{source.damaged:,} rows left out, the first: {source.first_damage}")
    if opts.source == "imdb" and opts.kinds is None:
        print("imported films only; add --kinds movie,series for series")


def _source(opts: argparse.Namespace, settings: BaseSettings) -> FileSource:
    """Return what is imported. Raises ConfigurationError for a source without a file."""
    from moviecrawler.catalogue import (
        csv_import,
        episodes_import,
        imdb_import,
        tmdb_import,
        wikidata_import,
    )

    data_dir = check_data_dir(settings["DATA_DIR"])
    origin = opts.origin
    if opts.source == "imdb":
        kinds = opts.kinds or frozenset({"movie"})
        selection = imdb_import.Selection(kinds, opts.min_votes, *opts.years)
        return imdb_import.ImdbDatasets(origin or datasets_url(settings), data_dir, selection)
    if opts.source == "episodes":
        return episodes_import.ImdbEpisodes(origin or datasets_url(settings), data_dir)
    if opts.source == "tmdb":
        return tmdb_import.TmdbExport(origin or tmdb_import.HOME, data_dir, day=utc_now().date())
    if origin is not None and "://" not in origin:
        of_file = (
            wikidata_import.WikidataCrosswalk if opts.source == "wikidata" else csv_import.CsvTitles
        )
        return of_file(Path(origin))
    if opts.source == "wikidata":
        print(wikidata_import.QUERY, end="", flush=True)
        where = "https://query.wikidata.org"
        raise ConfigurationError(
            f"run this query at {where}, save the result as CSV and name it with --from FILE"
        )
    raise ConfigurationError("csv needs the file: --from FILE")


# --- What is due ----------------------------------------------------------------------------------


def _status(command: BaseCommand, database: Database, opts: argparse.Namespace) -> None:
    from moviecrawler.catalogue.figures import figures

    now = utc_now()
    sites = []
    for site in figures(database, now):
        budget = _budget(command.settings, site.site)
        caught_up_by = None if budget is None else site.caught_up_by(budget, now.date())
        own = {"budget_a_day": budget, "caught_up_by": caught_up_by}
        sites.append({**msgspec.to_builtins(site), **own})
    if opts.json:
        print_json(sites, indent=2)
        return
    columns = "known unfound unread ok absent error blocked due overdue boosted to_review oldest"
    names = {name: name.replace("_", " ") for name in columns.split()} | {
        "unfound": "id not known",
        "unread": "never fetched",
        "budget_a_day": "pages per day allowed",
        "pages_a_day": "pages per day needed",
        "caught_up_by": "nothing overdue by",
    }
    head = ["", *(str(site["site"]) for site in sites)]
    rows = [[label, *(_cell(site[name]) for site in sites)] for name, label in names.items()]
    print(table([head, *rows], right=True))


def _cell(value: date | float | str | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)[:10]


def _budget(settings: BaseSettings, site: Site) -> int | None:
    """Return how many pages per day may be requested from a site.

    None when there is no limit, or the site is not installed here.
    """
    if site not in SITES:
        return None
    budget = site_budget(settings, site)
    limits = [
        budget.per_day,
        None if budget.per_second is None else int(budget.per_second * _DAY_SECONDS),
    ]
    return min((limit for limit in limits if limit is not None), default=None)


def _boost(command: BaseCommand, database: Database, opts: argparse.Namespace) -> None:
    from moviecrawler.catalogue.id_lists import read_films
    from moviecrawler.catalogue.store import boost_named

    films = read_films(dict.fromkeys(SITES, ""), ",".join(opts.titles), None)
    titles = list(dict.fromkeys(title for film in films for title in film.ids.items()))
    with database.transaction() as cursor:
        unknown = boost_named(cursor, titles, opts.by, utc_now())
    print(f"{len(titles) - len(unknown)} of {len(titles)} titles boosted by {opts.by:g}")
    if unknown:
        named = ", ".join(site_id for _, site_id in unknown[:_MAX_NAMED])
        command.fail(
            f"{len(unknown)} of the ids are not in the catalogue, such as {named}; "
            "import their titles first (a season is added when the page of its series is fetched)"
        )


def _due(
    command: BaseCommand,  # noqa: ARG001 - as all actions
    database: Database,
    opts: argparse.Namespace,
) -> None:
    from moviecrawler.catalogue.figures import due

    for site in [opts.site] if opts.site else SITES:
        rows = due(database, site, opts.limit, utc_now())
        print(f"{site}: {len(rows)} due" + (", the first:" if len(rows) == opts.limit else ""))
        for row in rows:
            print(
                printable(
                    f"  {row.queue:8} {row.site_id:40} {fold(row.title or '')} ({row.year or '?'})"
                )
            )


def _review(command: BaseCommand, database: Database, opts: argparse.Namespace) -> None:
    from moviecrawler.catalogue.figures import reviews
    from moviecrawler.catalogue.outcomes import decide

    is_list = not (opts.title or opts.site or opts.accept or opts.refuse)
    is_decision = opts.title and opts.site and opts.accept != opts.refuse
    if not (is_list or is_decision):
        raise ConfigurationError("to decide, give IMDb id, site and --accept or --refuse")
    if is_list:
        rows = reviews(database, opts.limit)
        for row in rows:
            title = f"{row.imdb_id or '?':12} {fold(row.title or '')} ({row.year or '?'})"
            print(
                printable(
                    f"{title}  {row.site} {row.site_id}  {row.score:g}: "
                    f"{fold(', '.join(row.reasons))}"
                )
            )
        if not rows:
            print("nothing is under review")
        return
    imdb_id = parse_title_id(ID_SITE, opts.title)
    if pages := decide(database, imdb_id, opts.site, opts.page, accept=opts.accept, now=utc_now()):
        print(
            printable(f"{imdb_id}: {', '.join(pages)} {'accepted' if opts.accept else 'refused'}")
        )
    else:
        command.fail(f"nothing of {imdb_id} is under review on {opts.site}")


_LIMIT = option("--limit", type=whole_number, default=20, help="rows to show (default: 20)")
_SITE = option("site", nargs="?", choices=tuple(SITES), metavar="SITE")
_ACTIONS: dict[str, tuple[Callable[..., None], tuple[Option, ...]]] = {
    "import": (
        _import,
        (
            option("source", choices=("imdb", "episodes", "tmdb", "wikidata", "csv")),
            option(
                "--from",
                dest="origin",
                type=_origin,
                metavar="PATH|URL",
                help="a file or folder, or another server",
            ),
            option("--kinds", type=_kinds, help="imdb: which titles (default: movie)"),
            option(
                "--min-votes",
                type=partial(whole_number, above=-1),
                default=0,
                help="imdb: titles with at least that many votes",
            ),
            option(
                "--years",
                type=_years,
                default=(None, None),
                help="imdb: of these years, such as 1990-",
            ),
        ),
    ),
    "status": (_status, (JSON,)),
    "boost": (
        _boost,
        (
            option("titles", nargs="+", metavar="ID|URL"),
            option(
                "--by",
                type=_weight,
                default=1.0,
                help="how much; the most boosted are fetched first",
            ),
        ),
    ),
    "due": (_due, (_SITE, _LIMIT)),
    "review": (
        _review,
        (
            option("title", nargs="?", metavar="IMDB_ID"),
            _SITE,
            option("--accept", action="store_true", help="the page is the title's"),
            option("--refuse", action="store_true", help="it is not, and won't be tried again"),
            option("--page", help="of several pages under review, this one"),
            _LIMIT,
        ),
    ),
}
"""What does an action, and its arguments."""
