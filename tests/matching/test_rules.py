"""Each row of the tables of `comparing.py` decides its example."""

import pytest

from moviecrawler.items import TitleKind
from moviecrawler.matching.comparing import FILMS, SERIES, Rule, compare, decide, facts_of
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.forms import Title, prepare

# A pair for each row, as beside the rows: IMDb = another site.
VETOES = [
    "Crash|2004|Paul Haggis|112 = Crash|2004|David Cronenberg|110",
    "Psycho|1960|Alfred Hitchcock|109 = Psycho|1998|Gus Van Sant|105",
    "Alien|1979|Ridley Scott|117 = Alien Covenant|2017|Ridley Scott|122",
]
UNLIKE = "Sahara Lys|1999|Ida Brandt|101 = Lights of the Sahara|1999|Ida Brandt|102"
OF_FILMS = [
    "The Hurt Locker|2008|Kathryn Bigelow|131 = The Hurt Locker|2009|Kathryn Bigelow|127",
    "Hero|2002|Zhang Yimou|107 = Hero|2004|Yimou Zhang|99",
    "Metropolis|1927|Fritz Lang|153 = Metropolis [re-release]|2010|Fritz Lang|150",
    (
        "The Man Who Knew Too Much|1934|Alfred Hitchcock|75"
        " = The Man Who Knew Too Much|1956|Alfred Hitchcock|120"
    ),
    "Star Wars: Episode IV - A New Hope|1977|George Lucas|121 = Star Wars|1977|George Lucas|125",
    (
        "Koyaanisqatsi|1982|Godfrey Reggio|86"
        " = Koyaanisqatsi - Life Out of Balance|1983|Godfrey Reggio|87"
    ),
    "The Godfather|1972|Francis Ford Coppola|175 = The Godfather|1972||177",
    "The Godfather|1972|||2000000 = The Godfather|1972||177",
    "Vatel|2000||103|9000 = Vatel|2000||117",
    "The Hurt Locker|2008||131 = The Hurt Locker|2009||127",
    "Hero|2002||99 = Hero|2004||99",
    "The Lord of the Rings: The Two Towers|2002||179|1700000 = The Two Towers|2002||179",
    "Dracula|1931||75 = Dracula|1931||104",
    "Rear Window|1954||112 = Rear Window|2000||112",
    "Brewick|2001|Mara Levin = Brewick: The Return|2002|Mara Levin",
    "King Kong|1933||100 = King Kong|2005||187",
]
OF_SERIES = [
    "Twin Peaks|1990-1991|Mark Frost = Twin Peaks|1990|David Lynch, Mark Frost",
    "The Office|2005-2013||9 = The Office|2009||9",
    "The Wire|2002-2008||5 = The Wire|2002",
    "Marvel's Daredevil|2015-2018|Drew Goddard = Daredevil|2015|Drew Goddard",
    "Marvel's Daredevil|2015-2018||3 = Daredevil|2015||3",
    "Frasier|1993-2004|Christopher Lloyd = Frasier|2023|Christopher Lloyd",
    "The Office|2005-2013||9 = The Office|2005||2",
    "Marvel's Daredevil|2015-2018 = Daredevil|2015",
    "Battlestar Galactica|1978-1979 = Battlestar Galactica|2004",
]
ROWS: list[tuple[TitleKind, Rule, str]] = [
    *(("movie", *row) for row in zip(FILMS, [UNLIKE, *VETOES, *OF_FILMS], strict=True)),
    *(("series", *row) for row in zip(SERIES, [*VETOES, *OF_SERIES], strict=True)),
]


def title(site: str, text: str, kind: TitleKind) -> Title:
    name, years, makers, extent, votes = [*text.split("|"), "", "", "", ""][:5]
    first, _, last = years.partition("-")
    return prepare(
        site,
        TitleFacts(
            title=name,
            kind=kind,
            year=int(first),
            end_year=int(last) if last else None,
            runtime_minutes=int(extent) if extent and kind == "movie" else None,
            season_count=int(extent) if extent and kind == "series" else None,
            directors=[maker for maker in makers.split(", ") if maker],
            votes=int(votes) if votes else None,
        ),
    )


@pytest.mark.promise(
    "Each rule of matching decides its example, and another director is never accepted."
)
@pytest.mark.parametrize(
    ("kind", "rule", "pair"),
    ROWS,
    ids=[f"{kind} {rule.decision} {pair}" for kind, rule, pair in ROWS],
)
def test_a_row_decides_its_example_whichever_title_comes_first(
    kind: TitleKind, rule: Rule, pair: str
) -> None:
    one, other = pair.split(" = ")
    ours = title("imdb", one, kind)
    theirs = title("rottentomatoes", other, kind)
    facts = facts_of(ours, theirs)
    assert facts == facts_of(theirs, ours)
    assert decide(facts, FILMS if kind == "movie" else SERIES) == rule, facts
    assert compare(ours, theirs).decision == compare(theirs, ours).decision == rule.decision


@pytest.mark.promise(
    "Each rule of matching decides its example, and another director is never accepted."
)
@pytest.mark.parametrize("rules", [FILMS, SERIES], ids=["films", "series"])
def test_other_directors_and_titles_that_only_contain_the_other_are_never_accepted(
    rules: list[Rule],
) -> None:
    accepting = [rule.facts for rule in rules if rule.decision == "accepted"]
    first = next(place for place, rule in enumerate(rules) if rule.decision == "accepted")
    assert all(
        facts.directors != "other" and facts.likeness in {"equal", "near"} for facts in accepting
    )
    refusing = [rule.facts.directors for rule in rules[:first] if rule.decision == "refused"]
    assert refusing == ["other", ""]


@pytest.mark.parametrize(
    ("kind", "ours", "theirs", "decision"),
    [
        # Its own record has another number in its title; only a namesake without votes is left when
        # the prefix is cut off.
        (
            "movie",
            "The Long Way Home|2011||90",
            "Harbour Kids: The Long Way Home|2011||89",
            "review",
        ),
        # A series that began a year before, whose runtime is not known.
        ("movie", "Lampo: Keepers of Light|1999", "Lampo: Keepers of Light|2000||82", "review"),
        ("series", "Salt|2004|Ida Quarrie", "Salt|2026|Ida Quarrie", "accepted"),
        ("series", "Salt|2009||4", "Salt|2004-2011||4", "accepted"),
        ("series", "Salt|2004-2011||8", "Salt|2019||8", "refused"),
        ("series", "Salt|2004||8|12", "Salt|2004||8", "review"),
    ],
    ids=["prefix", "a series", "runs", "began before", "began again", "hardly any votes"],
)
def test_titles_that_share_a_name_and_little_else_are_told_apart(
    kind: TitleKind, ours: str, theirs: str, decision: str
) -> None:
    assert (
        compare(title("imdb", ours, kind), title("metacritic", theirs, kind)).decision == decision
    )
