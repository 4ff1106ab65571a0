"""Every fact of real rows, through the whole way: a server with the files, a crawl, CSV and Postgres."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.extract.imdb_values import TITLE_KINDS
from tests.crawling import crawl_command, scrapy
from tests.datasets.served import serving
from tests.services.postgres import execute
from tests.shared import SHARED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.shared("datasets")
FOLDER = SHARED / "datasets"


def rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            # The apostrophe before what a spreadsheet would take for a formula.
            yield {name: cell[1:] if cell[:1] == "'" and cell[1:2] in "'=+-@" else cell for name, cell in row.items()}


def expected(truth: dict[str, Any]) -> dict[str, Any]:
    """What is to be stored of a title."""
    people = {role: [(p["id"], p["name"]) for p in truth[f"{role}s"] or []] for role in ("director", "writer")}
    return {
        "title": truth["title"],
        "original_title": truth["original_title"] if truth["original_title"] != truth["title"] else None,
        "kind": truth["kind"],
        "title_type": truth["title_type"],
        "year": truth["year"],
        "end_year": truth["end_year"],
        "runtime_minutes": truth["runtime_minutes"],
        "genres": truth["genres"],
        "score": None if truth["rating"] is None else (float(truth["rating"]), truth["votes"]),
        **people,
        "cast": [(p["id"], p["name"], " / ".join(p["characters"]) or None) for p in truth["cast"] or []],
        "place": (truth["series_id"], truth["season"], truth["episode"]),
        "akas": truth["akas"] and truth["akas"]["count"],
        "regions": {region: names for region, names in (truth["akas"] or {}).items() if region != "count"},
    }


def test_all_facts_of_real_rows_reach_the_csv_files_and_postgres(database_url: str, tmp_path: Path) -> None:
    truths = {row["site_id"]: row for row in map(json.loads, (FOLDER / "TRUTH.jsonl").read_text("utf-8").splitlines())}
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(truths), encoding="utf-8")
    with serving(FOLDER) as url:
        command = crawl_command("imdb", "via=datasets", f"file={ids}")
        finished = scrapy(*command, data=tmp_path, IMDB_DATASETS_URL=url, DATABASE_URL=database_url)
    assert finished.code == 0, finished.log
    assert f"{len(truths)} stored" in finished.log
    for stored in (of_csv(tmp_path), of_postgres(database_url)):
        assert stored.keys() == truths.keys()
        for site_id, truth in truths.items():
            wanted = expected(truth)
            assert {name: stored[site_id][name] for name in wanted} == wanted, site_id


def of_csv(folder: Path) -> dict[str, dict[str, Any]]:
    def number(cell: str) -> int | None:
        return int(cell) if cell else None

    credits_ = defaultdict(list)
    for row in rows(folder / "credits.csv"):
        credits_[row["site_id"], row["role"]].append(row)
    others = defaultdict(list)
    for row in rows(folder / "other_titles.csv"):
        others[row["site_id"]].append(row)
    known = {row["person_id"]: row["name"] for row in rows(folder / "people.csv")}
    found = {}
    for row in rows(folder / "movies.csv"):
        site_id = row["site_id"]
        people = {
            role: sorted(credits_[site_id, role], key=lambda credit: int(credit["position"]))
            for role in ("director", "writer", "cast")
        }
        assert all(known[credit["person_id"]] == credit["name"] for part in people.values() for credit in part)
        found[site_id] = {
            **{name: row[name] or None for name in ("title", "original_title", "kind", "title_type")},
            **{name: number(row[name]) for name in ("year", "end_year", "runtime_minutes")},
            "genres": row["genres"].split("; ") if row["genres"] else [],
            "score": (float(row["imdb_rating"]), int(row["imdb_votes"])) if row["imdb_rating"] else None,
            **{role: [(c["person_id"], c["name"] or None) for c in people[role]] for role in ("director", "writer")},
            "cast": [(c["person_id"], c["name"] or None, c["character"] or None) for c in people["cast"]],
            "place": (row["series_id"] or None, number(row["season"]), number(row["episode"])),
            **_akas([(other["title"], other["country"]) for other in others[site_id]]),
        }
    return found


def of_postgres(database_url: str) -> dict[str, dict[str, Any]]:
    credits_ = defaultdict(list)
    for site_id, role, person_id, name, character in execute(
        database_url,
        "SELECT r.site_id, c.role::text, p.site_person_id, c.name, c.character FROM records r"
        " JOIN credits c USING (record_id) JOIN people p USING (person_id) ORDER BY c.position",
    ):
        credits_[site_id, role].append((person_id, name, character))
    others: dict[Any, list[Any]] = defaultdict(list)
    for site_id, title, country in execute(
        database_url, "SELECT site_id, title, country FROM other_titles ORDER BY site_id, position"
    ):
        others[site_id].append((title, country))
    names = ("title", "original_title", "kind", "title_type", "year", "end_year", "runtime_minutes")
    found: dict[Any, dict[str, Any]] = {}
    for site_id, series_id, season, episode, value, count, genres, *plain in execute(
        database_url,
        "SELECT r.site_id, r.series_id, r.season, r.episode, s.value::float, s.count,"
        " ARRAY(SELECT g.name FROM record_genres rg JOIN genres g USING (genre_id) WHERE rg.record_id = r.record_id"
        " ORDER BY rg.position), r.title, r.original_title, r.kind::text, r.title_type, r.year, r.end_year,"
        " r.runtime_minutes FROM records r LEFT JOIN scores s ON s.record_id = r.record_id AND s.kind = 'imdb'",
    ):
        found[site_id] = {
            **dict(zip(names, plain, strict=True)),
            "genres": genres,
            "score": None if value is None else (value, count),
            **{role: [part[:2] for part in credits_[site_id, role]] for role in ("director", "writer")},
            "cast": credits_[site_id, "cast"],
            "place": (series_id, season, episode),
            **_akas(others[site_id]),
        }
    return found


def _akas(named: list[tuple[str, str | None]]) -> dict[str, Any]:
    regions = ("US", "GB", "FR", "DE", "JP")
    return {
        "akas": len(named) or None,
        "regions": {region: [title for title, country in named if country == region] for region in regions}
        if named
        else {},
    }


def test_the_truth_speaks_of_every_kind_of_title() -> None:
    kinds = {json.loads(line)["title_type"] for line in (FOLDER / "TRUTH.jsonl").read_text("utf-8").splitlines()}
    assert {"movie", "tvSeries", "tvEpisode", "short"} <= kinds
    assert kinds & TITLE_KINDS.keys()
