"""The views of both databases: a text each, with columns for the rows of `sites` and `score_kinds`.

They are made of what is in these tables, not of what this process knows of: another worker's sites
keep their columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

from moviecrawler.basics.files import read_package_file
from moviecrawler.database.tables import CHILDREN, MISSES, PEOPLE, RECORDS, Table
from moviecrawler.items import Role
from moviecrawler.sites.fields import AMOUNT_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

VIEWS = {
    "list_ranks": "The rank of each title in each list.",
    "title_scores": "Each score of a title once: that of its own site, if that is stored.",
    "scoreboard": "One row per title with all sites' scores; seasons and episodes have their own.",
    "series_parts": "What season_scores and episode_scores are made of.",
    "episode_scores": "One row per episode with all sites' scores.",
    "season_scores": "One row per season with all sites' scores, or the averages of its episodes.",
    "movies": "Each record with its scores, amounts of money, and the names of its makers.",
}
"""What a row is, in the order in which they are created: later ones may read earlier ones."""
_OF_TITLE = {
    "title": "text",
    "year": "integer",
    "kind": "text",
    "runtime_minutes": "integer",
}
"""Columns of a title, with their types."""
MAKERS = tuple(role for role in get_args(Role) if role != "cast")
_read = partial(read_package_file, __name__)


@dataclass(frozen=True, slots=True)
class ShownKind:
    """A row of `score_kinds` that has columns."""

    kind: str
    site: str
    highest: int
    audience: bool
    rates_seasons: bool
    value_column: str
    count_column: str


def view_texts(sites: Mapping[str, str], kinds: Sequence[ShownKind]) -> list[str]:
    """Return the statements that create the views.

    Args:
        sites: The main list of each site, by authority.
        kinds: In the order of their columns.
    """
    forms: dict[str, Callable[[], dict[str, Iterable[str]]]] = {
        "scoreboard": lambda: _scoreboard(sites, kinds),
        "series_parts": lambda: _series_parts(list(sites), kinds),
        "episode_scores": lambda: {
            "id_names": [f"{site}_id" for site in sites],
            "score_names": [name for kind in kinds for name in _names(kind)],
        },
        "season_scores": lambda: _season_scores(list(sites), kinds),
        "movies": lambda: _movies(kinds),
    }
    texts = []
    for view in VIEWS:
        parts = forms[view]() if view in forms else {}
        joined = {
            name: ("\n    " if name.endswith("joins") else ",\n    ").join(lines)
            for name, lines in parts.items()
        }
        texts.append(_read(f"{view}.sql").format(**joined))
    return texts


def _names(kind: ShownKind) -> tuple[str, str]:
    return kind.value_column, kind.count_column


def _mean(values: Sequence[str]) -> str:
    """Return the average of the values that are not null."""
    if not values:
        return "NULL"
    total = " + ".join(f"coalesce({value}, 0)" for value in values)
    return f"({total}) / nullif({_number_of(values)}, 0)"


def _number_of(values: Iterable[str]) -> str:
    """Return how many of some values are not null."""
    return " + ".join(["0", *(f"CASE WHEN {value} IS NULL THEN 0 ELSE 1 END" for value in values)])


def _score_join(kind: ShownKind, sites: Iterable[str]) -> str:
    """Return the join of the row that `title_scores` has, found by keys alone."""
    of_sites = [
        f"(SELECT record_id FROM scores WHERE record_id = r_{site}.record_id"
        f" AND kind = '{kind.kind}')"
        for site in sorted(sites, key=lambda site: site != kind.site)  # by authority, but its own
    ]
    records = ",\n        ".join([*of_sites, "NULL"])
    return (
        f"LEFT JOIN scores s_{kind.kind} ON s_{kind.kind}.kind = '{kind.kind}'"
        f" AND s_{kind.kind}.record_id = coalesce(\n        {records}\n    )"
    )


def _scoreboard(sites: Mapping[str, str], kinds: Sequence[ShownKind]) -> dict[str, Iterable[str]]:
    def id_of(site: str) -> str:
        """Return a title's id on a site, which other sites' pages may name."""
        own = f"r_{site}.site_id"
        named = [f"r_{other}.{site}_id" for other in sites if f"{site}_id" in RECORDS.columns]
        return f"coalesce({', '.join([own, *named])})" if named else own

    scaled = {kind.kind: f"s_{kind.kind}.value * 100.0 / {kind.highest}" for kind in kinds}
    return {
        "own_columns": [
            # Without a type, SQLite would not find the year '2001' that Datasette asks for.
            f"CAST(coalesce({', '.join([f'r_{site}.{name}' for site in sites])}, NULL) AS {kind})"
            f" AS {name}"
            for name, kind in _OF_TITLE.items()
        ],
        "id_columns": [f"{site}_id" for site in sites],
        "url_columns": [f"{site}_url" for site in sites],
        "ids": [f"{id_of(site)} AS {site}_id, r_{site}.url AS {site}_url" for site in sites],
        # The votes of the first score stand beside it, as in IMDb's own lists.
        "score_columns": [
            *(name for kind in kinds[:1] for name in _names(kind)),
            *(kind.value_column for kind in kinds[1:]),
        ],
        "count_columns": [kind.count_column for kind in kinds[1:]],
        "scaled_columns": [f"{kind.value_column}_100" for kind in kinds],
        "scores": [
            f"s_{kind.kind}.value AS {kind.value_column}, s_{kind.kind}.count AS"
            f" {kind.count_column}, round({scaled[kind.kind]}, 1) AS {kind.value_column}_100"
            for kind in kinds
        ],
        "critics_mean": [_mean([scaled[kind.kind] for kind in kinds if not kind.audience])],
        "users_mean": [_mean([scaled[kind.kind] for kind in kinds if kind.audience])],
        "scores_known": [_number_of(scaled.values())],
        "time_columns": [f"{site}_fetched_at" for site in sites],
        "times": [f"r_{site}.scraped_at AS {site}_fetched_at" for site in sites],
        "list_columns": [f"{site}_list_rank" for site in sites],
        "lists": [
            f"(SELECT l.rank FROM list_ranks l WHERE l.site = '{site}'"
            f" AND l.list_name = '{main_list}' AND l.site_id = r_{site}.site_id)"
            f" AS {site}_list_rank"
            for site, main_list in sites.items()
        ],
        "record_joins": [
            # A site may be called like a word of SQL.
            f"LEFT JOIN records r_{site} ON r_{site}.title_id = t.title_id"
            f" AND r_{site}.site = '{site}'"
            for site in sites
        ],
        "score_joins": [_score_join(kind, sites) for kind in kinds],
    }


def _series_parts(sites: Sequence[str], kinds: Sequence[ShownKind]) -> dict[str, Iterable[str]]:
    def of_site(column: str, site: str) -> str:
        return f"max(p.{column}) FILTER (WHERE p.site = '{site}')"

    def first(column: str, *newest: str) -> str:
        values = [*newest, *(of_site(column, site) for site in sites)]
        return f"coalesce({', '.join(values)}, NULL) AS {column}"

    return {
        "own_columns": [
            # The datasets, which have no records, have the newer title of an episode.
            first("title", "max(p.title) FILTER (WHERE p.record_id IS NULL)"),
            first("year"),
            first("episode_count"),
        ],
        "ids": [f"{of_site('site_id', site)} AS {site}_id" for site in sites],
        "scores": [
            f"max(p.{value}) FILTER (WHERE p.score_kind = '{kind.kind}' AND p.place = 1) AS {name}"
            for kind in kinds
            for value, name in zip(("value", "count"), _names(kind), strict=True)
        ],
    }


def _season_scores(sites: Sequence[str], kinds: Sequence[ShownKind]) -> dict[str, Iterable[str]]:
    def of_season(name: str) -> str:
        return f"max({name}) FILTER (WHERE kind = 'season' AND nth = 1) AS {name}"

    scores = []
    for kind in kinds:
        value, count = _names(kind)
        if kind.rates_seasons:
            scores += [of_season(value), of_season(count)]
        else:
            weights = f"sum({count}) FILTER (WHERE kind = 'episode' AND {value} IS NOT NULL)"
            total = f"sum({value} * {count}) FILTER (WHERE kind = 'episode')"
            scores += [
                f"round({total} * 1.0 / {weights}, 2) AS {value}",
                f"{weights} IS NOT NULL AS {value}_derived",
                f"{weights} AS {count}",
                f"count({count}) FILTER (WHERE kind = 'episode') AS {value}_episodes",
            ]
    return {
        "own_columns": [of_season(name) for name in ("title", "year")],
        "episode_count": [of_season("episode_count")],
        "ids": [of_season(f"{site}_id") for site in sites],
        "scores": scores,
    }


def _movies(kinds: Sequence[ShownKind]) -> dict[str, Iterable[str]]:
    return {
        "people": [
            f"(SELECT json_group_array(name) FROM {_names_of(role, 'r')}) AS {role}s"
            for role in MAKERS
        ],
        "scores": [
            f"s_{kind.kind}.value AS {kind.value_column}, s_{kind.kind}.count AS"
            f" {kind.count_column}"
            for kind in kinds
        ],
        "amounts": [
            f"{column}.value AS {column}, {column}.currency AS {column}_currency"
            for column in AMOUNT_COLUMNS.values()
        ],
        "joins": [
            *(
                f"LEFT JOIN scores s_{kind.kind}"
                f" ON s_{kind.kind}.record_id = r.record_id AND s_{kind.kind}.kind = '{kind.kind}'"
                for kind in kinds
            ),
            *(
                f"LEFT JOIN amounts {column}"
                f" ON {column}.record_id = r.record_id AND {column}.kind = '{kind}'"
                for kind, column in AMOUNT_COLUMNS.items()
            ),
        ],
    }


def _names_of(role: str, record: str) -> str:
    """Return the query of the names of a record's makers."""
    return (
        f"(SELECT name FROM credits WHERE record_id = {record}.record_id AND role = '{role}'"
        " AND name IS NOT NULL ORDER BY position)"
    )


# --- The CSV files: a view each, in SQLite alone ------------------------------------------------


def csv_views(kinds: Sequence[ShownKind]) -> dict[str, str]:
    """Return the statement of the view of each CSV file, by the view's name."""
    views = {"csv_misses": _csv_of(MISSES, "misses x", (), "x.site, x.site_id")}
    for table in CHILDREN:
        source = f"{table.name} x JOIN records r ON r.record_id = x.record_id"
        if table.name == "scores":
            source += " JOIN score_kinds k ON k.kind = x.kind"
        order = "r.site, r.site_id, " + _ORDERS.get(table.name, f"x.{table.key[1]}")
        more = _EXTRA_COLUMNS.get(table.name, ())
        views[f"csv_{table.name}"] = _csv_of(table, source, ("r.site", "r.site_id"), order, more)
    views["csv_people"] = _csv_of(PEOPLE, "people x", (), "x.site, x.person_id, x.name")
    of_movies = [
        *(
            f"(SELECT group_concat(name, '; ') FROM {_names_of(role, 'x')}) AS {role}s"
            for role in MAKERS
        ),
        *(f"x.{name}" for kind in kinds for name in _names(kind)),
        *(f"x.{name}, x.{name}_currency" for name in AMOUNT_COLUMNS.values()),
    ]
    views["csv_lists"] = (
        "SELECT x.site, x.list_name, x.rank, x.site_id, x.pass_at,"
        f" {_cell('x.computed', 'boolean')} AS computed"
        " FROM list_ranks x ORDER BY x.site, x.list_name, x.rank"
    )
    views["csv_movies"] = _csv_of(RECORDS, f"movies {_RANKED}", (), _BY_RANK, of_movies)
    return {name: f"CREATE VIEW {name} AS {select}" for name, select in views.items()}


def csv_parts(file: str) -> str:
    """Return the query of the parts of a file, in its order: each one's id, and its rows.

    A part is what the file has of one record. What no record is of is one part, whose id is 0.
    """
    if file == "movies":
        return f"SELECT x.record_id, 1 FROM records {_RANKED} ORDER BY {_BY_RANK}"
    if any(file == table.name for table in CHILDREN):
        return (
            f"SELECT r.record_id, count(*) FROM {file} JOIN records r USING (record_id)"
            " GROUP BY r.site, r.site_id ORDER BY r.site, r.site_id"
        )
    return f"SELECT 0, count(*) FROM csv_{file}"


_RANKED = (
    "x JOIN sites o ON o.site = x.site LEFT JOIN list_ranks l"
    " ON l.site = x.site AND l.list_name = o.main_list AND l.site_id = x.site_id"
)
_BY_RANK = "x.site, l.rank IS NULL, l.rank, x.record_id"
_HIDDEN = {
    "record_id",
    "title_id",
    "newer_id",
    "placed_by_hand",
    "match_keys",
    "updated_at",
    "added_at",
    "fetch",
    "person_key",
    "named_at",
}
"""The columns that are in no CSV file."""
_EXTRA_COLUMNS = {
    "scores": ("k.highest AS scale", "k.average_highest AS average_scale", "r.scraped_at"),
    "offers": ("r.scraped_at",),
}
_INSTEAD = {"offers.seen_at": "coalesce(x.seen_at, r.scraped_at)"}
_ORDERS = {
    "credits": "instr('director writer creator cast', x.role), x.position",
    "scores": "k.shown IS NULL, k.shown, x.kind",
}


def _csv_of(
    table: Table, source: str, first: Sequence[str], order: str, more: Sequence[str] = ()
) -> str:
    columns = [
        f"{_INSTEAD.get(f'{table.name}.{name}') or _cell(f'x.{name}', table.type_of(name))}"
        f" AS {name}"
        for name in table.columns
        if name not in _HIDDEN
    ]
    cells = ", ".join([*first, *columns, *more])
    return f"SELECT {cells} FROM {source} ORDER BY {order}"


def _cell(column: str, kind: str) -> str:
    """Return a column as a text cell: lists joined by semicolons, words for booleans."""
    if kind == "boolean":
        return f"CASE {column} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"
    if kind == "json":
        values = f"(SELECT group_concat(value, '; ') FROM json_each({column}))"
        pairs = values.replace("(value", "(key || '=' || value")
        # Most lists have texts without quotes or other signs that JSON escapes.
        texts = f"replace(substr({column}, 3, length({column}) - 4), '\",\"', '; ')"
        return (
            f"CASE WHEN {column} IN ('[]', '{{}}') THEN NULL"
            f" WHEN {column} LIKE '{{%' THEN {pairs}"
            f" WHEN {column} LIKE '[\"%' AND instr({column}, '\\') = 0"
            f" AND instr({column}, '\", ') = 0 THEN {texts}"
            f" ELSE {values} END"
        )
    return column
