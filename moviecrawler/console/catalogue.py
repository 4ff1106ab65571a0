"""`scrapy catalogue`: importing titles, showing and changing what is due, and deciding on matches."""

from __future__ import annotations

import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import fields, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from tqdm import tqdm

from moviecrawler.catalogue.csv_import import CsvTitles
from moviecrawler.catalogue.episodes_import import ImdbEpisodes, ImportedEpisodes, load_episodes
from moviecrawler.catalogue.fetching import run_fetching
from moviecrawler.catalogue.figures import due, figures, reviews
from moviecrawler.catalogue.imdb_import import ImdbDatasets, Selection
from moviecrawler.catalogue.lanes import FRESH_FOR, DeficitRoundRobin, Outlook, Shares, outlook
from moviecrawler.catalogue.loading import Imported, begin_import, end_import, imported_rows, load
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.catalogue.tmdb_import import HOME as TMDB
from moviecrawler.catalogue.tmdb_import import TmdbExport
from moviecrawler.catalogue.wikidata_import import BY_HAND_QUERY, WikidataCrosswalk
from moviecrawler.catalogue.wikidata_import import SERVICE as WIKIDATA
from moviecrawler.clock import utc_now
from moviecrawler.configuration import check_settings
from moviecrawler.console.output import Console, print_json, print_table
from moviecrawler.datasets.downloads import DownloadError
from moviecrawler.errors import ConfigurationError
from moviecrawler.frontier.budgets import site_budget
from moviecrawler.items import Site, TitleKind
from moviecrawler.option_types import is_http_url
from moviecrawler.options import CatalogueOptions
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.sites import datasets_url
from moviecrawler.texts import fold, printable
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.figures import SiteFigures
    from moviecrawler.catalogue.file_source import FileSource
    from moviecrawler.catalogue.store import CatalogueStore

    TitleSource = ImdbDatasets | TmdbExport | WikidataCrosswalk | CsvTitles
    Source = TitleSource | ImdbEpisodes

_ACTIONS = ("import", "status", "boost", "due", "review")
_SOURCES = ("imdb", "episodes", "tmdb", "wikidata", "csv")
_KINDS = "movie"
"""What `--kinds` is when nobody gives it."""
_PART = 10_000
"""Rows that are imported together, some 12 MB. Stores wait for as long as a part takes: a second or two on a busy machine."""
_DAY = 86_400
_NONE = "\N{EN DASH}"
_NAMED_IN_ERRORS = 3
"""Ids of many that are named in an error."""


class Catalogue(Console):
    """Works on the database that DATABASE_URL names."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the action that the first argument names; exit code 1 when it fails."""
        if not args or args[0] not in _ACTIONS:
            raise ConfigurationError(f"name one of {', '.join(_ACTIONS)}")
        action, *names = args
        check_settings(self.settings)
        with closing(open_catalogue(self.settings)) as store:
            arguments = _parse(action, names, opts)
            try:
                getattr(self, f"_{action}")(store, arguments, opts)
            except ConfigurationError as error:  # of a file, the database or a setting, as the arguments are right
                self.fail(str(error))

    # --- Actions ------------------------------------------------------------------------------------------------------

    def _import(self, store: CatalogueStore, arguments: Any, opts: argparse.Namespace) -> None:
        if arguments[0] == "wikidata" and opts.origin is None and self.settings.getbool("ROBOTSTXT_OBEY"):
            print(BY_HAND_QUERY.rstrip())
            self.fail(
                "nothing is imported: the robots.txt of query.wikidata.org disallows its query service to programs like this"
                " one; run this query at https://query.wikidata.org, save the answer as CSV and name it with --from FILE"
            )
            return
        source = _source(arguments, opts.origin, self.settings)
        # Ctrl-C ends it at once, also while the database loads a part, or Twisted's reactor runs, which may swallow a
        # KeyboardInterrupt. What was fetched and loaded by then is gone on with the next time.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # There is one table of episodes, whatever they were read from.
        is_one = opts.origin is None or isinstance(source, ImdbEpisodes)
        name = source.name if is_one else f"{source.name} {opts.origin}"
        if source.is_remote:
            try:
                run_fetching(self.settings, source.fetch)
            except DownloadError as error:
                raise DownloadError(f"{error}; or fetch it by hand, and name it with --from") from error
        version = source.version()
        done = begin_import(store, name, version)
        if done is not None and isinstance(source, WikidataCrosswalk):
            source.check_whole(imported_rows(store, name))
        told = "{added:,} titles added, {changed:,} changed, {ids:,} ids on other sites"
        if isinstance(source, ImdbEpisodes):
            told = "{added:,} episodes added, {changed:,} changed, {removed:,} removed"
            episodes = ImportedEpisodes(0, 0, 0)
            if done is not None:
                with _progress_bar(source, name) as moved:
                    episodes = load_episodes(store, source, name, version, utc_now(), moved)
            made = episodes._asdict()
        else:
            made = msgspec.to_builtins(Imported() if done is None else _load(store, source, name, version, done))
        if done is not None:
            store.hasten_series(utc_now())
        damaged = f"; {source.damaged:,} damaged rows were left out" if source.damaged else ""
        lines = [
            f"{name} has not changed since the last import"
            if done is None
            else f"{name}: {told.format(**made)}{damaged}"
        ]
        if isinstance(source, ImdbDatasets) and opts.kinds == _KINDS:
            lines.append("only films were asked for; --kinds movie,series takes series, too")
        _show({"source": name, "unchanged": done is None, **made, "damaged": source.damaged}, lines, as_json=opts.json)

    def _status(self, store: CatalogueStore, arguments: Any, opts: argparse.Namespace) -> None:  # noqa: ARG002 - as all
        now = utc_now()
        shares = _shares(self.settings)
        rows = []
        for site in figures(store, now, (now - FRESH_FOR).date()):
            budget = _budget(self.settings, site.site)
            ahead = None if budget is None else outlook(site, budget=budget, today=now.date(), shares=shares)
            rows.append((site, budget, ahead))
        if not opts.json:
            _print_status(rows, now)
            return
        figures_of = []
        for site, budget, ahead in rows:
            found = dict.fromkeys(field.name for field in fields(Outlook))
            if ahead is not None:
                found = msgspec.to_builtins(replace(ahead, pages_a_day=round(ahead.pages_a_day, 1)))
            figures_of.append({**msgspec.to_builtins(site), "budget_a_day": budget, **found})
        print_json(figures_of, indent=2)

    def _boost(self, store: CatalogueStore, arguments: Any, opts: argparse.Namespace) -> None:
        ids, weight = arguments
        unknown = store.boost(ids, weight, utc_now())
        known = len(ids) - len(unknown)
        told = f"{known} of {len(ids)} titles boosted by {weight:g}"
        _show({"asked": len(ids), "boosted": known}, [told], as_json=opts.json)
        if unknown:
            named = ", ".join(site_id for _, site_id in unknown[:_NAMED_IN_ERRORS])
            self.fail(
                f"{len(unknown)} of the ids are of no title in the catalogue, such as {named}; import it first, and have the"
                " page of a season's series fetched"
            )

    def _due(self, store: CatalogueStore, arguments: Any, opts: argparse.Namespace) -> None:
        sites, limit = arguments
        shares = _shares(self.settings)
        found = {site: due(store, site, limit, DeficitRoundRobin(shares), utc_now()) for site in sites}
        lines = []
        for site, rows in found.items():
            lines.append(f"{site}: {len(rows)} due" + (", the first:" if len(rows) == limit else ""))
            lines += [f"  {row.queue:8} {row.site_id:40} {fold(row.name)} ({row.year or '?'})" for row in rows]
        _show({site: [row._asdict() for row in rows] for site, rows in found.items()}, lines, as_json=opts.json)

    def _review(self, store: CatalogueStore, arguments: Any, opts: argparse.Namespace) -> None:
        decided, limit = arguments
        if decided is not None:
            imdb_id, site = decided
            pages = store.decide(imdb_id, site, opts.page, accept=opts.accept, now=utc_now())
            if not pages:
                self.fail(f"nothing of {imdb_id} is under review on {site}")
                return
            told = f"{imdb_id}: {', '.join(pages)} {'accepted' if opts.accept else 'refused'}"
            data = {"imdb_id": imdb_id, "site": site, "pages": pages, "accepted": opts.accept}
            _show(data, [told], as_json=opts.json)
            return
        rows = reviews(store, limit)
        lines = [
            f"{row.imdb_id or '?':12} {fold(row.title or '')} ({row.year or '?'})  {row.site} {row.site_id}"
            f"  {row.score:g}: {fold(', '.join(row.reasons))}"
            for row in rows
        ]
        _show([row._asdict() for row in rows], lines or ["nothing is under review"], as_json=opts.json)


def _show(data: Any, lines: Sequence[str], *, as_json: bool) -> None:
    """Print data as JSON, or lines for people."""
    if as_json:
        print_json(data, indent=2)
        return
    for line in lines:
        print(printable(line))


def _parse(action: str, names: Sequence[str], opts: argparse.Namespace) -> Any:
    """Return the arguments of an action. Raises ConfigurationError."""
    limit = _whole("--limit", opts.limit, 1)
    if action == "import":
        if len(names) != 1 or names[0] not in _SOURCES:
            raise ConfigurationError(f"name one source: {', '.join(_SOURCES)}")
        if names[0] == "csv" and opts.origin is None:
            raise ConfigurationError("csv needs the file: --from FILE")
        if opts.origin is not None and "://" in opts.origin:
            _check_url(opts.origin)
        return names[0], _selection(opts)
    if action == "boost":
        if not names:
            raise ConfigurationError("name the titles to boost, such as tt0111161")
        return list(dict.fromkeys(map(_named, names))), _weight(opts.by)
    if action == "due":
        unknown = [name for name in names if name not in get_args(Site)]
        if unknown or len(names) > 1:
            raise ConfigurationError(f"name one site or none: {', '.join(get_args(Site))}")
        return names or get_args(Site), limit
    if action == "review":
        if opts.accept and opts.refuse:
            raise ConfigurationError("either --accept or --refuse, not both")
        if not names and not (opts.accept or opts.refuse):
            return None, limit
        if len(names) != 2 or names[1] not in get_args(Site) or not (opts.accept or opts.refuse):  # noqa: PLR2004 - id and site
            raise ConfigurationError("to decide, give IMDb id, site and --accept or --refuse")
        return (parse_title_id("imdb", names[0]), names[1]), limit
    if names:
        raise ConfigurationError(f"{action} takes no argument {names[0]!r}")
    return None


def _check_url(origin: str) -> None:
    """Raise ConfigurationError for a URL that nothing can be fetched from; the origin is stored as a part of the source's name."""
    if "@" in origin:
        raise ConfigurationError(
            "--from has an @, as if it held a password, and would be stored; fetch the files by hand, and name where they are"
        )
    if not is_http_url(origin):
        raise ConfigurationError(f"--from is {origin!r}; give a path, or a URL such as https://example.org/files")


def _named(text: str) -> tuple[Site, str]:
    """Return the site and the id that a person means by an id or a URL of any site. Raises ConfigurationError."""
    found: list[tuple[Site, str]] = []
    for site in get_args(Site):
        with suppress(ConfigurationError):
            found.append((site, parse_title_id(site, text)))
    if not found:
        raise ConfigurationError(f"{text[:200]!r} is no title; give an id such as tt0111161 or tv/slug/s02, or its URL")
    if len(found) > 1:
        sites = " and ".join(site for site, _ in found)
        raise ConfigurationError(f"{text[:200]!r} may be a title of {sites}; give its URL, or its id on IMDb")
    return found[0]


def _source(arguments: tuple[str, Selection], origin: str | None, settings: BaseSettings) -> Source:
    name, selection = arguments
    data_dir = check_data_dir(settings["DATA_DIR"])
    now = utc_now()
    if name == "imdb":
        return ImdbDatasets(origin or datasets_url(settings), data_dir, selection=selection)
    if name == "episodes":
        return ImdbEpisodes(origin or datasets_url(settings), data_dir)
    if name == "tmdb":
        return TmdbExport(origin or TMDB, data_dir, day=now.date())
    if name == "wikidata":
        return WikidataCrosswalk(origin or WIKIDATA, data_dir, now=now)
    return CsvTitles(Path(origin or ""))


def _load(store: CatalogueStore, source: TitleSource, name: str, version: str, done: int) -> Imported:
    """Import the rows after the first `done`, and show the progress."""
    total = Imported()
    rows = islice(source.rows(), done, None)  # an earlier import got so far
    read = done
    loading: Future[Imported] | None = None
    with (
        _progress_bar(source, name) as moved,
        # The database loads a part while the next one is read.
        ThreadPoolExecutor(1, "import") as thread,
    ):
        while part := list(islice(rows, _PART)):
            read += len(part)
            if loading is not None:
                total += loading.result()
            loading = thread.submit(load, store, name, version, part, read, utc_now())
            moved()
        if loading is not None:
            total += loading.result()
    end_import(store, name, version, utc_now())
    return total


@contextmanager
def _progress_bar(source: FileSource, name: str) -> Iterator[Callable[[], object]]:
    """Show how much of a source is read; give what brings that up to date."""
    is_shown = sys.stderr.isatty()
    with tqdm(desc=name, unit="B", unit_scale=True, total=source.total, file=sys.stderr, disable=not is_shown) as bar:
        yield lambda: bar.update(source.position - bar.n)
        bar.update(source.position - bar.n)


def _selection(opts: argparse.Namespace) -> Selection:
    kinds = [kind.strip() for kind in opts.kinds.split(",") if kind.strip()]
    unknown = [kind for kind in kinds if kind not in get_args(TitleKind)]
    if unknown:
        raise ConfigurationError(f"--kinds names {unknown[0]!r}; there are {', '.join(get_args(TitleKind))}")
    first, dash, last = opts.years.partition("-")
    if opts.years and not (first or last):
        raise ConfigurationError(f"--years is {opts.years!r}; give such as 1990-1999, 1990- or 2001")
    return Selection(
        kinds=frozenset(kinds),
        min_votes=_whole("--min-votes", opts.min_votes, 0),
        first_year=_whole("--years", first, 1) if first else None,
        last_year=_whole("--years", last, 1) if last else None if dash or not first else _whole("--years", first, 1),
    )


def _whole(name: str, text: str, least: int) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise ConfigurationError(f"{name} is {text!r}; give a whole number of at least {least}")
    return int(text)


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = 0.0
    if not 0 < weight < 1e9:  # noqa: PLR2004 - what a real holds with room
        raise ConfigurationError(f"--by is {text!r}; give a number above 0")
    return weight


def _budget(settings: BaseSettings, site: Site) -> int | None:
    """Return how many pages a day may be asked of a site; None when there is no limit."""
    budget = site_budget(settings, site)
    limits = [budget.per_day, None if budget.per_second is None else int(budget.per_second * _DAY)]
    return min((limit for limit in limits if limit is not None), default=None)


_COLUMNS = (
    *("known", "series", "seasons", "unfound", "never", "ok", "absent", "error", "blocked"),
    *("due", "claimed", "overdue", "boosted", "airing", "to_review"),
)


def _print_status(rows: Sequence[tuple[SiteFigures, int | None, Outlook | None]], now: datetime) -> None:
    head = ["", *(site.site for site, _, _ in rows)]
    lines = [[name.replace("_", " "), *(f"{getattr(site, name):,}" for site, _, _ in rows)] for name in _COLUMNS]
    lines.append(["oldest", *(_ago(site.oldest, now) for site, _, _ in rows)])
    lines.append(["pages a day allowed", *("any" if budget is None else f"{budget:,}" for _, budget, _ in rows)])
    lines.append(["pages a day needed", *(_NONE if a is None else f"{a.pages_a_day:,.0f}" for _, _, a in rows)])
    lines.append(["all fetched by", *(_by(ahead, "read_by") for _, _, ahead in rows)])
    lines.append(["nothing overdue by", *(_by(ahead, "caught_up_by") for _, _, ahead in rows)])
    print_table([head, *lines], right=True)
    width = shutil.get_terminal_size(fallback=(100, 24)).columns
    for site, _, _ in rows:
        if site.paused_because is not None:
            print(printable(f"{site.site} is not asked: {fold(site.paused_because)}")[: max(width, 80)])


def _by(ahead: Outlook | None, name: str) -> str:
    if ahead is None:
        return _NONE
    day = getattr(ahead, name)
    return "never" if day is None else day.isoformat()


def _ago(then: datetime | None, now: datetime) -> str:
    return _NONE if then is None else f"{(now - then.astimezone(UTC)).days} d"


def _shares(settings: BaseSettings) -> Shares:
    options = CatalogueOptions.read(settings)
    return Shares(boosted=options.boost_share, stale=options.stale_share)
