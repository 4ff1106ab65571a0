"""How often `scrapy match` is right on real records of known titles, and how long it takes.

usage: python -m tests.benchmarks.matching_accuracy [FOLDER]

FOLDER (default: ../shared/matching) holds the records of two sites, 160,000 IMDb titles, and which
record is which title. Nothing of it belongs to this project.

Printed are precision (of what is accepted) and recall (of what is known), with the directors that
IMDb's titles come with: none, those of titles with 1,000 votes, all; and how many records are
accepted all the same when their true title is taken away. Rotten Tomatoes' records name no
directors; where titles have them, a record is given those of its true title.
"""

import csv
import lzma
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import Title, prepare
from moviecrawler.matching.linking import link
from tests.benchmarks.harness import figure
from tests.shared import SHARED

FOLDER = SHARED / "matching"
SITES = {"rt2020": "rottentomatoes", "mc2015": "metacritic"}
GROUPS = {"pop": "Rotten Tomatoes, namesakes", "id": "Rotten Tomatoes, by id", "mc": "Metacritic"}
ASKED = {"none": (99.9, 96.5), "mixed": (99.95, 98.4), "both": (99.95, 98.4)}
"""Precision and recall in per cent, by the directors that titles come with."""
LEAST_VOTES = {"none": float("inf"), "mixed": 1_000, "both": 0}

Row = dict[str, str]


def read(folder: Path) -> dict[str, list[Row]]:
    """Return the rows of each file: IMDb's titles, and the records of the sites."""

    def rows(name: str) -> list[Row]:
        with lzma.open(folder / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))

    return {name: rows(name) for name in ("imdb", *SITES)}


def directors_of(row: Row) -> list[str]:
    return [name for name in (row.get("directors") or row.get("crew") or "").split("|") if name]


def title_of(row: Row, site: str, directors: Sequence[str]) -> Title:
    """Return a record, or a title of IMDb, which has an original title and votes too."""
    facts = TitleFacts(
        title=row["title"],
        original_title=row.get("original_title") or None,
        imdb_id=row.get("id"),
        year=int(row.get("year") or 0) or None,
        release_date=row.get("release_date") or None,
        runtime_minutes=int(row.get("runtime") or 0) or None,
        votes=int(row.get("votes") or 0) or None,
        directors=[*directors],
    )
    return prepare(site, facts)


def measure(
    data: dict[str, list[Row]], column: str, *, quick: bool
) -> dict[str, tuple[float, float]]:
    """Print what is found, and return precision and recall in per cent by group of records."""
    figures: dict[str, tuple[float, float]] = {}
    of_title = {row["id"]: directors_of(row) for row in data["imdb"]}
    titles = [
        title_of(
            row,
            "imdb",
            of_title[row["id"]] if int(row["votes"] or 0) >= LEAST_VOTES[column] else [],
        )
        for row in data["imdb"]
    ]
    for name, site in SITES.items():
        rows = data[name]
        records = [
            title_of(
                row,
                site,
                [] if column == "none" else directors_of(row) or of_title.get(row["imdb_id"], []),
            )
            for row in rows
        ]
        began = time.process_time()
        found = link(records, titles)
        seconds = time.process_time() - began
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for row, answer in zip(rows, found, strict=True):
            if row["imdb_id"]:
                count = counts[row["label"] if row["label"] in GROUPS else "mc"]
                count.update(["known", answer.decision])
                if answer.decision == "accepted" and answer.imdb_id != row["imdb_id"]:
                    count["wrong"] += 1
                    print("  wrong:", row["title"], row["year"], row["imdb_id"], answer)
        for group, count in sorted(counts.items(), reverse=True):
            right = count["accepted"] - count["wrong"]
            precision = 100 * right / max(count["accepted"], 1)
            recall = 100 * right / count["known"]
            figures[group] = precision, recall
            print(
                f"{column:6} {GROUPS[group]:28} {count['known']:5} known"
                f"  review {count['review']:4}  refused {count['refused']:4}  {seconds:5.1f} s"
            )
            least_precision, least_recall = ASKED[column]
            what = f"{GROUPS[group]}, directors: {column}"
            figure(f"precision in %, {what}", precision, at_least=least_precision)
            figure(f"recall in %, {what}", recall, at_least=least_recall)
        if not quick:
            print(
                "       accepted while the true title is missing: "
                f"{without_truth(rows, records, titles)}"
            )
    return figures


def without_truth(rows: list[Row], records: list[Title], titles: list[Title]) -> int:
    """Return how many records are accepted as another title while their true one is not there.

    Half of the true titles are taken away at a time.
    """
    wrong = 0
    known = [n for n, row in enumerate(rows) if row["imdb_id"]]
    for asked in (known[::2], known[1::2]):
        gone = {rows[n]["imdb_id"] for n in asked}
        found = link(records, [title for title in titles if title.imdb_id not in gone])
        for n in asked:
            if found[n].decision == "accepted":
                wrong += 1
                print(
                    "  wrong without the true title:", rows[n]["title"], rows[n]["year"], found[n]
                )
    return wrong


def main() -> None:
    folder = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    if not folder.is_dir():
        sys.exit(
            f"there is no folder {folder}; "
            "name one with imdb.tsv.xz, rt2020.tsv.xz and mc2015.tsv.xz"
        )
    data = read(folder)
    for column in ASKED:
        measure(data, column, quick=False)


if __name__ == "__main__":
    main()
