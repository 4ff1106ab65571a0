"""How often `scrapy match` is right on real records of which the right title is known, and how long it takes.

usage: python -m tests.benchmarks.matching_accuracy [FOLDER] [--part 0|1]

FOLDER (default: ../shared/matching) holds the records of two sites, 160,000 IMDb titles, and which record is which title.
Nothing of it belongs to this project. `--part` measures on one half of the records with a known title: rules are tuned on
half 0 and checked on half 1.

Printed are each wrong answer, precision (of what is accepted) and recall (of what is known), with the directors that IMDb's
titles come with: none, those of titles with 1,000 votes, all. Rotten Tomatoes' records name no directors; where titles have them, a
record is given those of its true title. Hard negatives: each record whose true title is taken away, by what the likeliest
of the titles left has in common with it, and how many of these are accepted all the same.
"""

from __future__ import annotations

import argparse
import csv
import lzma
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from moviecrawler.catalogue.forms import Title, prepare
from moviecrawler.catalogue.linking import Linked, link
from moviecrawler.catalogue.rows import TitleFacts
from tests.shared import SHARED

FOLDER = SHARED / "matching"
SITES = {"rt2020": "rottentomatoes", "mc2015": "metacritic"}
GROUPS = {"pop": "Rotten Tomatoes, namesakes", "id": "Rotten Tomatoes, by id", "mc": "Metacritic"}
COLUMNS = ("none", "mixed", "both")
KNOWN = 1_000
ASKED = {"none": (99.9, 96.5), "mixed": (99.95, 98.4), "both": (99.95, 98.4)}

Row = dict[str, str]


class Figures(NamedTuple):
    """Percent."""

    precision: float
    recall: float


class Data(NamedTuple):
    titles: list[Row]
    records: dict[str, list[Row]]


def read(folder: Path) -> Data:
    def rows(name: str) -> list[Row]:
        with lzma.open(folder / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

    return Data(rows("imdb"), {name: rows(name) for name in SITES})


def number(text: str) -> int | None:
    return int(text) if text else None


def directors_of(row: Row) -> list[str]:
    return [name for name in (row.get("directors") or row.get("crew") or "").split("|") if name]


def titles_of(data: Data, column: str) -> list[Title]:
    def known(row: Row) -> bool:
        return column == "both" or (column == "mixed" and (number(row["votes"]) or 0) >= KNOWN)

    return [
        prepare(
            "imdb",
            TitleFacts(
                title=row["title"],
                original_title=row["original_title"],
                imdb_id=row["id"],
                year=number(row["year"]),
                runtime_minutes=number(row["runtime"]),
                votes=number(row["votes"]),
                directors=directors_of(row) if known(row) else [],
            ),
        )
        for row in data.titles
    ]


def records_of(data: Data, name: str, column: str) -> list[Title]:
    of_title = {row["id"]: directors_of(row) for row in data.titles}

    def directors(row: Row) -> list[str]:
        return [] if column == "none" else directors_of(row) or of_title.get(row["imdb_id"], [])

    return [
        prepare(
            SITES[name],
            TitleFacts(
                title=row["title"],
                year=number(row["year"]),
                release_date=row["release_date"] or None,
                runtime_minutes=number(row["runtime"]),
                directors=directors(row),
            ),
        )
        for row in data.records[name]
    ]


def group_of(row: Row) -> str:
    return row["label"] if row["label"] in GROUPS else "mc"


def half_of(row: Row) -> int:
    return crc32(row["slug"].encode()) % 2


def negative(record: Title, title: Title) -> str:
    """Return what makes a title that is not the record's look like it."""
    if not record.names & title.names:
        digits = [
            {word for name in names for word in name.split() if word.isdigit()} for names in (record.names, title.names)
        ]
        return "other number" if digits[0] != digits[1] else "subtitle or spelling"
    gap = abs((record.year or 0) - (title.year or 0)) if record.year and title.year else None
    return {0: "same title and year", 1: "a year apart", 2: "2-3 years apart", 3: "2-3 years apart"}.get(
        -1 if gap is None else gap, "further apart"
    )


def measure(data: Data, column: str, part: int | None, *, quick: bool) -> dict[str, Figures]:
    """Print what is found, and return it by group of records."""
    figures: dict[str, Figures] = {}
    titles = titles_of(data, column)
    by_id = {title.imdb_id: title for title in titles}
    for name in SITES:
        rows, records = data.records[name], records_of(data, name, column)
        began = time.process_time()
        found = link(records, titles)
        seconds = time.process_time() - began
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for row, answer in zip(rows, found, strict=True):
            if row["imdb_id"] and part in {None, half_of(row)}:
                count = counts[group_of(row)]
                count["known"] += 1
                count[answer.decision] += 1
                wrong = answer.decision == "accepted" and answer.imdb_id != row["imdb_id"]
                count["wrong"] += wrong
                if wrong:
                    print("  wrong:", row["title"], row["year"], row["imdb_id"], answer)
        for group, count in sorted(counts.items(), reverse=True):
            right = count["accepted"] - count["wrong"]
            precision, recall = 100 * right / max(count["accepted"], 1), 100 * right / count["known"]
            figures[group] = Figures(precision, recall)
            print(
                f"{column:6} {GROUPS[group]:28} {count['known']:5} known  precision {precision:7.3f} %"
                f"  recall {recall:6.2f} %  review {count['review']:4}  refused {count['refused']:4}"
                f"  wrong {count['wrong']:3}   asked {ASKED[column][0]} / {ASKED[column][1]}   {seconds:5.1f} s"
            )
        if not quick:
            without_truth(rows, records, titles, by_id, part)
    return figures


def without_truth(
    rows: list[Row], records: list[Title], titles: list[Title], by_id: dict[str | None, Title], part: int | None
) -> None:
    """Print how many records are accepted as another title while their true one is not there."""
    looks: Counter[str] = Counter()
    accepted: Counter[str] = Counter()
    for half in (0, 1):
        asked = [n for n, row in enumerate(rows) if row["imdb_id"] and half_of(row) == half and part in {None, half}]
        gone = {rows[n]["imdb_id"] for n in asked}
        found: list[Linked] = link(records, [title for title in titles if title.imdb_id not in gone])
        for n in asked:
            likeliest = found[n].imdb_id or (found[n].others[0].imdb_id if found[n].others else None)
            if likeliest is not None:
                look = negative(records[n], by_id[likeliest])
                looks[look] += 1
                accepted[look] += found[n].decision == "accepted"
                if found[n].decision == "accepted":
                    print("  wrong without the true title:", rows[n]["title"], rows[n]["year"], found[n])
    shown = ", ".join(f"{look} {accepted[look]} of {number}" for look, number in sorted(looks.items()))
    print(f"       true title taken away, accepted as another: {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--part", type=int, choices=(0, 1))
    given = parser.parse_args()
    if not given.folder.is_dir():
        parser.error(f"there is no folder {given.folder}; name one with imdb.tsv.xz, rt2020.tsv.xz and mc2015.tsv.xz")
    data = read(given.folder)
    for column in COLUMNS:
        measure(data, column, given.part, quick=False)


if __name__ == "__main__":
    main()
