"""Each row of `rules.csv` decides its example."""

import msgspec
import pytest

from moviecrawler.items import TitleKind
from moviecrawler.matching.comparing import (
    FILMS,
    SERIES,
    Evidence,
    Rule,
    compare,
    comparison_of,
    decide,
)
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import Title, prepare
from tests import written

ROWS: list[tuple[TitleKind, Rule]] = [
    *(("movie", rule) for rule in FILMS),
    *(("series", rule) for rule in SERIES),
]


def title(site: str, text: str, kind: str) -> Title:
    name, years, makers, extent, votes, date = [*text.split("|"), "", "", "", "", ""][:6]
    first, _, last = years.partition("-")
    return prepare(
        site,
        TitleFacts(
            title=name,
            kind=None if kind == "unknown" else msgspec.convert(kind, TitleKind),
            year=int(first) if first else None,
            release_date=date or None,
            end_year=int(last) if last else None,
            runtime_minutes=int(extent) if extent and kind != "series" else None,
            season_count=int(extent) if extent and kind == "series" else None,
            directors=[maker for maker in makers.split(", ") if maker],
            votes=int(votes) if votes else None,
        ),
    )


@pytest.mark.promise(
    "Each rule of matching decides its example, and another director is never accepted."
)
@pytest.mark.parametrize(
    ("kind", "rule"),
    ROWS,
    ids=[f"{kind} {rule.decision} {rule.example}" for kind, rule in ROWS],
)
def test_a_row_decides_its_example_whichever_title_comes_first(kind: TitleKind, rule: Rule) -> None:
    one, other = rule.example.split(" = ")
    ours = title("imdb", one, kind)
    theirs = title("rottentomatoes", other, kind)
    comparison = comparison_of(ours, theirs)
    assert comparison == comparison_of(theirs, ours)
    assert decide(comparison, FILMS if kind == "movie" else SERIES) == rule, comparison
    assert compare(ours, theirs).decision == compare(theirs, ours).decision == rule.decision


@pytest.mark.promise(
    "Each rule of matching decides its example, and another director is never accepted."
)
@pytest.mark.parametrize("rules", [FILMS, SERIES], ids=["films", "series"])
def test_other_directors_and_titles_that_only_contain_the_other_are_never_accepted(
    rules: list[Rule],
) -> None:
    accepting = [rule for rule in rules if rule.decision == "accepted"]
    assert all(rule.directors <= {"same", "unknown"} for rule in accepting)
    assert all(rule.likeness <= {"equal", "near"} for rule in accepting)
    assert all(rule.directors and rule.likeness for rule in accepting)
    refusing = [rule for rule in rules[: rules.index(accepting[0])] if rule.decision == "refused"]
    assert [(rule.directors, rule.likeness) for rule in refusing] == [
        ({"other"}, set()),
        (set(), {"none"}),
    ]


@pytest.mark.parametrize(
    ("kinds", "ours", "theirs", "points", "decision", "reasons"),
    written.rows(__file__, "compared.txt"),
)
def test_two_titles_are_compared_with_reasons(
    kinds: str, ours: str, theirs: str, points: str, decision: str, reasons: str | None
) -> None:
    kind, _, other = kinds.partition("/")
    a = title("imdb", ours, kind)
    b = title("metacritic", theirs, other or kind)
    match = compare(a, b, Evidence(float(points), "an id"))
    assert (match.decision, "; ".join(match.reasons) or None) == (decision, reasons)
