"""Pairs of a title and a page of which is known whether they are one: invented films, as three sites might show them.

Nothing here is shared with the matcher: scripts, spellings, numerals and translations are written out in tables of their
own. Half of the pairs are one film, the other half are what is easily taken for one. Some can't be told by anybody from
what the two sides show; they are made too, as seldom as they are met.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from moviecrawler.catalogue.rows import IdSource, TitleFacts
from moviecrawler.items import Credit, Movie, Role, Site, TitleKind


@dataclass(slots=True, kw_only=True)
class Side:
    """What one site shows of a film, or of a series, whose creator stands for the director."""

    title: str
    year: int | None
    director: str | None
    runtime: int | None
    kind: TitleKind = "movie"
    imdb_id: str | None = None
    original: str | None = None
    votes: int | None = None
    release_date: str | None = None
    end_year: int | None = None
    seasons: int | None = None


@dataclass(slots=True, kw_only=True)
class Pair:
    case: str
    same: bool
    ours: Side
    theirs: Side
    site: Site
    evidence: IdSource | None = None
    other_titles: list[str] = field(default_factory=list)

    @property
    def wanted(self) -> TitleFacts:
        side = self.ours
        return TitleFacts(
            imdb_id=side.imdb_id,
            title=side.title,
            original_title=side.original,
            kind=side.kind,
            year=side.year,
            runtime_minutes=side.runtime,
            end_year=side.end_year,
            season_count=side.seasons,
            directors=[side.director] if side.director else [],
            other_titles=self.other_titles,
            votes=side.votes,
        )

    @property
    def page(self) -> Movie:
        side = self.theirs
        return Movie(
            site=self.site,
            site_id="movie/x" if self.site == "metacritic" else "m/x",
            url="",
            title=side.title,
            original_title=side.original,
            kind=side.kind,
            year=side.year,
            release_date=side.release_date,
            runtime_minutes=side.runtime,
            imdb_id=side.imdb_id,
            end_year=side.end_year,
            season_count=side.seasons,
            credits=[Credit(name=side.director, role=self.role, position=1)] if side.director else [],
        )

    @property
    def role(self) -> Role:
        return "creator" if self.theirs.kind == "series" else "director"


def listed(text: str) -> list[str]:
    return text.split()


# --- Words ------------------------------------------------------------------------------------------------------------

ADJECTIVES = listed(
    "Silent Broken Golden Distant Hollow Crimson Restless Frozen Savage Gentle Hidden Burning Bitter Lonely Velvet Wicked "
    "Second Sleeping Scarlet Forgotten Wild Pale Northern Stolen Secret Paper Electric Midnight Perfect Ordinary"
)
NOUNS = listed(
    "Harbour Lantern Orchard Garden River Mountain Stranger Keeper Daughter Soldier Winter Summer Kingdom Shadow Mirror "
    "Station Island Painter Widow Captain Passenger Sparrow Tiger Orphan Carnival Letter Window Bridge Valley Thunder "
    "Lighthouse Butcher Gambler Horizon Cathedral Vampire Detective Wedding Butterfly Nightingale"
)
NAMES = listed(
    "Oslo Marseille Anselm Brewick Calder Delphine Ettore Farrow Ingrid Jonquil Kestrel Lazar Maren Tobias Ursula"
)
FIRST = listed(
    "Mara Ines Jonas Petra Hugo Alma Viktor Selma Rafael Greta Otto Lena Marcus Nadia Felix Clara Bruno Edith"
)
LAST = listed(
    "Levin Quarrie Holmberg Castellan Dufresne Okafor Lindqvist Moreau Petrov Ashdown Varga Rinaldi Kowalski Brandt Sato "
    "Whitlock Fonseca Nakamura Ostrander Delacroix Hartigan Zielinski"
)
BRITISH = {
    "Colour": "Color",
    "Theatre": "Theater",
    "Harbour": "Harbor",
    "Traveller": "Traveler",
    "Neighbours": "Neighbors",
    "Jeweller": "Jeweler",
    "Centre": "Center",
    "Honour": "Honor",
}
ACCENTED = {
    "Élodie à la fenêtre": "Elodie a la fenetre",
    "Größer als früher": "Grosser als fruher",
    "El niño y la montaña": "El nino y la montana",
    "Sæl på øya": "Sael pa oya",
    "São João à noite": "Sao Joao a noite",
    "Żółty śnieg": "Zolty snieg",
    "Čtvrtá přítelkyně": "Ctvrta pritelkyne",
    "Cœur fêlé": "Coeur fele",
    "Güneş batıyor": "Gunes batiyor",
    "Það er vetur": "Thad er vetur",
}
FOREIGN = (
    ("La casa del viento", "House of Wind"),
    ("Der lange Abschied", "No Way Back to Bremen"),
    ("Les enfants du phare", "Children by the Sea"),
    ("O rio sem margens", "Endless Water"),
    ("Il treno di notte", "Journey Until Dawn"),
    ("Skuggan av en sommar", "What August Knew"),
    ("Dom nad rozlewiskiem", "A House Above the Marsh"),
    ("Tři sestry z Brna", "Moravian Sisters"),
    ("Kuru otlar", "About Dry Grasses and Men"),
    ("Talvisydän", "Heart in January"),
    ("De stille getuige", "She Saw Everything"),
    ("Az utolsó nyár", "Budapest, Finally"),
)
"""Original titles, and what they are called elsewhere."""
SUBTITLES = (
    *("The Long Night", "A Love Story", "Return of the Keeper", "The Final Chapter", "Blood and Iron", "Origins"),
    *("The Legend Begins", "Escape from the Valley", "An Unlikely Friendship", "The Movie"),
)
SIGNS = (
    ("Broken Rules", "Br0ken Rule$"),
    ("Mash", "M*A*S*H"),
    ("Ten Thousand 10,000", "Ten Thousand 10000"),
    ("Seven 7½", "Seven 7 1/2"),
    ("Rich City", "Ri¢h ¢ity"),
    ("Doctor Salt", "Dr. Salt"),
    ("Salt versus Sea", "Salt vs. Sea"),
    ("Twenty-Two", "22"),
    ("Numbers", "Numb3rs"),
)
"""Plain letters, and signs instead."""
ROMAN = {2: "II", 3: "III", 4: "IV", 5: "V", 6: "VI"}
SPELT = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six"}

# One syllable or letter a row: how it is written, and the ways in which it is written in Latin letters.
CYRILLIC = dict(
    line.split("=")
    for line in listed(
        "а=a б=b в=v г=g д=d е=e ж=zh/ž/j з=z и=i й=y/j/i к=k л=l м=m н=n о=o п=p р=r с=s т=t у=u ф=f х=kh/h/ch ц=ts/c "
        "ч=ch/č ш=sh/š щ=shch/šč ы=y/i ь= э=e ю=yu/ju/iu я=ya/ja/ia ё=yo/jo"
    )
)
GREEK = dict(
    line.split("=")
    for line in listed(
        "α=a β=v γ=g δ=d ε=e ζ=z η=i θ=th ι=i κ=k λ=l μ=m ν=n ξ=x/ks ο=o π=p ρ=r σ=s τ=t υ=y/i φ=f/ph χ=ch/h ψ=ps ω=o"
    )
)
KANA = dict(
    line.split("=")
    for line in listed(
        "か=ka き=ki く=ku け=ke こ=ko さ=sa し=shi/si す=su せ=se そ=so た=ta ち=chi て=te と=to な=na に=ni の=no は=ha ひ=hi "
        "ま=ma み=mi む=mu も=mo や=ya ゆ=yu よ=yo ら=ra り=ri る=ru れ=re わ=wa"
    )
)
HAN = dict(
    line.split("=")
    for line in listed(
        "山=shan 水=shui 红=hong 花=hua 月=yue 夜=ye 风=feng 雪=xue 龙=long 虎=hu 城=cheng 海=hai 天=tian 地=di 人=ren 春=chun 秋=qiu "
        "江=jiang 白=bai 黑=hei 金=jin 马=ma 刀=dao 心=xin 梦=meng"
    )
)
HANGUL = dict(
    line.split("=")
    for line in listed(
        "바=ba 다=da 나=na 무=mu 하=ha 늘=neul 강=gang 산=san 기=gi 생=saeng 충=chung 도=do 시=si 여=yeo 름=reum 밤=bam 소=so 리=ri 마=ma 을=eul"
    )
)
SYLLABLES = listed("за ра ми ло ве ко на ту ше ча ди по ря лю жи хо му си бе го")
GREEK_SYLLABLES = listed("κα λο μι ρα θε νο σι πα δρο φω χα τυ ξε ζη")


class World:
    """Makes films and pairs, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable
        self.number = 0

    def one_of(self, *choices: str) -> str:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self) -> str:
        adjective, noun, other = (self.random.choice(words) for words in (ADJECTIVES, NOUNS, NOUNS))
        place = self.random.choice(NAMES)
        return self.one_of(
            f"The {adjective} {noun}", f"{adjective} {noun}", f"{noun} of {place}", f"The {noun} and the {other}",
            f"{place}", f"{place}'s {noun}", f"A {noun} in {place}", f"The {noun}", f"{adjective} {noun}, {adjective} {other}",
        )  # fmt: skip

    def person(self) -> str:
        return f"{self.random.choice(FIRST)} {self.random.choice(LAST)}"

    def someone_else(self, director: str | None) -> str:
        while True:
            person = self.person()
            if director is None or person.split()[-1] != director.split()[-1]:
                return person

    def other_name(self, title: str) -> str:
        words = set(title.casefold().split())
        while True:
            name = self.name()
            if not {word for word in name.casefold().split() if len(word) > 3} & words:
                return name

    def film(self, title: str | None = None) -> Side:
        self.number += 1
        return Side(
            title=title or self.name(),
            year=self.random.randrange(1930, 2027),
            director=self.person(),
            runtime=self.random.randrange(78, 170),
            imdb_id=f"tt{1_000_000 + self.number}",
        )

    def shown(self, film: Side, **changes: object) -> Side:
        """Return a film as another site's page shows it: often without this or that."""
        runtime = film.runtime
        if runtime is not None:
            runtime = None if self.chance(0.2) else runtime + self.random.choice((0, 0, 0, 1, -1, 2))
        page = replace(film, imdb_id=None, original=None, runtime=runtime)
        if self.chance(0.25):
            page.director = None
        return replace(page, **changes)  # type: ignore[arg-type]

    def written(self, script: dict[str, str], letters: str) -> tuple[str, str]:
        """Return a text in its script and one way to write it in Latin letters; the same way for the same letter."""
        way = {letter: self.random.choice(script.get(letter, letter).split("/")) for letter in sorted(set(letters))}
        return letters, "".join(way[letter] for letter in letters)

    def foreign_script(self) -> tuple[str, str]:
        """Return a title in another script, and in Latin letters as it is romanised."""
        kind = self.random.randrange(5)
        if kind in {0, 1}:
            script, syllables = ((CYRILLIC, SYLLABLES), (GREEK, GREEK_SYLLABLES))[kind]
            words = [
                "".join(self.random.choices(syllables, k=self.random.choice((2, 3))))
                for _ in range(self.random.choice((2, 3)))
            ]
            title, latin = self.written(script, " ".join(words))
            return title.capitalize(), latin.title()
        script = (KANA, HAN, HANGUL)[kind - 2]
        groups = [
            self.random.choices(list(script), k=self.random.choice((2, 3))) for _ in range(self.random.choice((2, 3)))
        ]
        way = {letter: self.random.choice(spelt.split("/")) for letter, spelt in script.items()}
        between = " " if script is HANGUL else ""
        return between.join("".join(group) for group in groups), " ".join(
            "".join(way[letter] for letter in group).capitalize() for group in groups
        )


# --- One film ---------------------------------------------------------------------------------------------------------


def plain(w: World) -> Pair:
    film = w.film()
    page = w.shown(film, imdb_id=film.imdb_id if w.chance(0.3) else None)
    return pair(w, film, page)


def punctuation(w: World) -> Pair:
    film = w.film()
    bare = film.title.removeprefix("The ").removeprefix("A ")
    title = w.one_of(film.title.upper(), bare, f"{bare}, The", film.title.replace(" and ", " & "), f"{film.title}!",
                     film.title.replace("'", "\u2019"), film.title.replace(" ", "-", 1))  # fmt: skip
    return pair(w, film, w.shown(film, title=title))


def accents(w: World) -> Pair:
    accented, bare = w.random.choice(list(ACCENTED.items()))
    film = w.film(accented)
    return pair(w, film, w.shown(film, title=bare))


def british(w: World) -> Pair:
    word = w.random.choice(list(BRITISH))
    title = w.one_of(
        f"The {word} of {w.random.choice(NAMES)}",
        f"{w.random.choice(ADJECTIVES)} {word}",
        f"{word} and {w.random.choice(NOUNS)}",
    )
    film = w.film(title)
    return pair(w, film, w.shown(film, title=title.replace(word, BRITISH[word])))


def numeral(w: World) -> Pair:
    number, name = w.random.choice(list(ROMAN)), w.name()
    ways = [
        f"{name} {number}",
        f"{name} {ROMAN[number]}",
        f"{name}: Part {ROMAN[number]}",
        f"{name}: Part {SPELT[number]}",
        f"{name} - Part {number}",
    ]
    kind = w.random.choice((ways[:2], ways[2:]))
    film = w.film(w.random.choice(kind))
    return pair(w, film, w.shown(film, title=w.random.choice(kind)))


def subtitle(w: World) -> Pair:
    name, behind = w.name(), w.random.choice(SUBTITLES)
    film = w.film(f"{name}{w.one_of(': ', ' - ')}{behind}")
    return pair(w, film, w.shown(film, title=w.random.choice((name, name, f"{name}: {behind}", f"{name} – {behind}"))))


def festival(w: World) -> Pair:
    film = w.film()
    assert film.year is not None
    return pair(w, film, w.shown(film, year=film.year + w.random.choice((1, 1, -1))))


def released_again(w: World) -> Pair:
    film = w.film()
    film.year = w.random.randrange(1925, 1990)
    page = w.shown(film, director=film.director, year=film.year + w.random.randrange(10, 40))
    if w.chance(0.3):
        page.release_date = f"{film.year}-0{w.random.randrange(1, 10)}"
    if w.chance(0.05):
        page.director = None  # nobody can tell it from a film that was made again
    return pair(w, film, page)


def romanised(w: World) -> Pair:
    script, latin = w.foreign_script()
    film = w.film(latin)
    page = w.shown(film, title=script)
    return pair(w, *((film, page) if w.chance(0.5) else (replace(film, title=script), replace(page, title=latin))))


def same_script(w: World) -> Pair:
    script, latin = w.foreign_script()
    film = replace(w.film(latin), original=script)
    return pair(w, film, w.shown(film, title=script))


def translated(w: World) -> Pair:
    original, english = w.random.choice(FOREIGN)
    way = w.random.choice(("original", "original", "page has both", "alternative", "alternative", "wikidata", "id"))
    film = w.film(english)
    page = w.shown(film, title=original)
    made = pair(w, film, page)
    if way == "original":
        made.ours.original = original
    elif way == "page has both":
        made.theirs.title = f"{original} ({english})"
    elif way == "alternative":
        made.other_titles = [w.name(), original, w.name()]
    elif way == "wikidata":
        made.evidence = "wikidata"
    else:
        made.theirs.imdb_id = film.imdb_id
    return made


def translated_without_a_trace(w: World) -> Pair:
    """Nothing but the facts is the same: not for a machine to decide."""
    original, english = w.random.choice(FOREIGN)
    film = w.film(english)
    return pair(w, film, w.shown(film, title=original))


def directors_name(w: World) -> Pair:
    film = w.film()
    first, last = (film.director or "").split()
    name = w.one_of(f"{first[0]}. {last}", f"{last} {first}", f"{first.upper()} {last.upper()}", f"{first} J. {last}")
    return pair(w, film, w.shown(film, director=name))


def other_cut(w: World) -> Pair:
    film = w.film()
    assert film.runtime is not None
    return pair(w, film, w.shown(film, director=film.director, runtime=film.runtime + w.random.randrange(8, 45)))


def series(w: World) -> Pair:
    film = replace(w.film(), kind="series", runtime=w.random.choice((45, 60, 480)))
    return pair(w, film, w.shown(film, director=None, runtime=w.random.choice((None, 50))))


def show(w: World) -> Side:
    """Return a series that ran for some years, as IMDb has it."""
    began = w.random.randrange(1960, 2015)
    seasons = w.random.randrange(1, 9)
    return replace(w.film(), kind="series", year=began, end_year=began + seasons - 1, seasons=seasons, runtime=45)


def series_by_a_later_year(w: World) -> Pair:
    """A site that shows the year of the newest season, and what backs it."""
    film = show(w)
    film.seasons = w.random.randrange(3, 9)
    film.end_year = (film.year or 0) + film.seasons
    year = w.random.randrange((film.year or 0) + 2, film.end_year + 1)
    page = w.shown(film, year=year, end_year=None)
    page.seasons, page.director = w.random.choice(
        ((film.seasons, None), (film.seasons, film.director), (None, film.director))
    )
    if w.chance(0.3):
        film.end_year = None  # it runs
    return pair(w, film, page)


def mini_series(w: World) -> Pair:
    film = show(w)
    film.end_year, film.seasons = film.year, 1
    return pair(w, film, w.shown(film, director=None, end_year=w.random.choice((None, film.year))))


def special(w: World) -> Pair:
    """A comedian's hour: a film on one site, no film and no series on the other."""
    film = w.film()
    film.kind = w.random.choice(("movie", "video"))
    return pair(w, film, w.shown(film, director=film.director, kind="other"))


def short(w: World) -> Pair:
    film = replace(w.film(), kind="short", runtime=w.random.randrange(6, 30))
    return pair(w, film, w.shown(film, kind="movie"))


def linked_from_elsewhere(w: World) -> Pair:
    film = w.film()
    assert film.year is not None
    made = pair(
        w,
        film,
        w.shown(
            film,
            year=film.year + w.random.choice((0, 0, 0, 1, 3)),
            title=w.one_of(film.title, f"{film.title}: {w.random.choice(SUBTITLES)}"),
        ),
    )
    made.evidence = "wikidata"
    return made


def bracketed(w: World) -> Pair:
    """One site shows the original title behind the translated one, or before it."""
    original, english = w.random.choice(FOREIGN)
    film = w.film(w.one_of(english, original))
    title = w.one_of(f"{english} ({original})", f"{original} ({english})", f"{english} ({original}) ({w.name()})")
    return pair(w, film, w.shown(film, title=title))


def whose_film(w: World) -> Pair:
    """One site writes in front whose film it is."""
    film = w.film()
    whose = w.one_of(f"{film.director}'s", f"{w.person()}'s", f"{w.random.choice(LAST)}'s")
    return pair(w, film, w.shown(film, title=f"{whose} {film.title}", director=film.director))


def signs(w: World) -> Pair:
    """The same word in plain letters, and as a poster writes it."""
    plain, written = w.random.choice(SIGNS)
    noun = w.random.choice(NOUNS)
    film = w.film(f"{plain} {noun}")
    return pair(w, film, w.shown(film, title=f"{written} {noun}"))


def late_release(w: World) -> Pair:
    """It comes out two years after the festivals."""
    film = w.film()
    page = w.shown(film, year=(film.year or 0) + 2)
    if page.director is None:
        page.runtime = film.runtime
    return pair(w, film, page)


def one_of_two_family_names(w: World) -> Pair:
    film = w.film()
    names = (film.director or "").split()
    film.director = " ".join([*names, w.random.choice(LAST)])
    other = film.director.split()
    return pair(w, film, w.shown(film, director=w.one_of(f"{other[0]} {other[1]}", f"{other[0]} {other[2]}")))


# --- What only looks so -----------------------------------------------------------------------------------------------


def sequel(w: World) -> Pair:
    film, number = w.film(), w.random.choice(list(ROMAN))
    later = replace(film, title=f"{film.title}{w.one_of(f' {number}', f' {ROMAN[number]}', f': Part {SPELT[number]}')}")
    before = replace(film, title=film.title if number == 2 else w.one_of(film.title, f"{film.title} {number - 1}"))
    gap = w.random.choice((0, 1, 1, 2, 2, 3, 4))
    return two(w, before, w.shown(later, year=(film.year or 0) + gap))


def sequel_by_subtitle(w: World) -> Pair:
    film = w.film()
    page = w.shown(
        film,
        title=f"{film.title}: {w.random.choice(SUBTITLES)}",
        year=(film.year or 0) + w.random.choice((1, 2, 2, 3, 4)),
        runtime=w.random.randrange(78, 170),
    )
    return two(w, film, page)


def two_subtitles(w: World) -> Pair:
    name = w.name()
    one, other = w.random.sample(SUBTITLES, 2)
    film = w.film(f"{name}: {one}")
    return two(w, film, w.shown(film, title=f"{name}: {other}", year=(film.year or 0) + w.random.choice((0, 0, 1))))


def spin_off(w: World) -> Pair:
    """Of the same year, by others: a cartoon beside the film."""
    film = w.film()
    page = w.shown(film, title=f"{film.title}: {w.random.choice(SUBTITLES)}", **others(w, film))
    return two(w, film, page)


def remake(w: World) -> Pair:
    film = w.film()
    page = w.shown(
        film,
        year=(film.year or 0) + w.random.randrange(12, 60),
        director=w.someone_else(film.director),
        runtime=w.random.randrange(78, 170),
    )
    if w.chance(0.3):
        page.director = None
    return two(w, film, page)


def remake_by_the_same_director(w: World) -> Pair:
    film = w.film()
    page = w.shown(
        film,
        year=(film.year or 0) + w.random.randrange(10, 30),
        runtime=round((film.runtime or 0) * w.random.choice((0.7, 0.8, 1.3, 1.5))),
    )
    return two(w, film, page)


def others(w: World, film: Side) -> dict[str, object]:
    """Return what tells another film of the same name and year: its director, or at least its runtime."""
    longer = round((film.runtime or 0) * w.random.choice((0.6, 0.75, 0.85, 1.2, 1.4)))
    if w.chance(0.7):
        return {"director": w.someone_else(film.director), "runtime": w.random.choice((None, longer, film.runtime))}
    return {"director": None, "runtime": longer}


def remake_in_the_same_year(w: World) -> Pair:
    film = w.film()
    return two(w, film, w.shown(film, year=(film.year or 0) + w.random.choice((0, 0, 0, 1, -1)), **others(w, film)))


def twin(w: World) -> Pair:
    """A film of the same year, of which the page shows nothing else: not for anybody to tell."""
    film = w.film()
    return two(w, film, w.shown(film, director=None, runtime=None))


def namesake(w: World) -> Pair:
    """A page of which hardly more than title and year is seen."""
    film = w.film()
    return two(
        w,
        film,
        w.shown(film, year=(film.year or 0) + w.random.choice((2, 3, 5, 9, -4, 30)), director=None, runtime=None),
    )


def undated(w: World) -> Pair:
    film = w.film()
    return two(w, film, w.shown(film, year=None, director=None, runtime=w.random.randrange(78, 170)))


LOOKALIKES = (
    *(("Harbour", "Labour"), ("Mirror", "Error"), ("Keeper", "Reaper"), ("Sparrow", "Arrow"), ("Station", "Nation")),
    *(("Hollow", "Follow"), ("Letter", "Better"), ("Tiger", "Timer"), ("Winter", "Winner"), ("Mountain", "Fountain")),
    *(
        ("Painter", "Panther"),
        ("Captain", "Curtain"),
        ("Lonely", "Lovely"),
        ("Garden", "Warden"),
        ("Sunrise", "Sunset"),
    ),
)


def lookalike(w: World) -> Pair:
    one, other = w.random.choice(LOOKALIKES)
    title = w.one_of("The {} of {}", "{} in {}").format("{}", w.random.choice(NAMES))
    film = w.film(title.format(one))
    page = w.shown(
        film, title=title.format(other), director=w.someone_else(film.director), runtime=w.random.randrange(78, 170)
    )
    if w.chance(0.3):
        page.director = None
    return two(w, film, page)


def other_film_of_the_director(w: World) -> Pair:
    film = w.film()
    return two(w, film, w.shown(film, title=w.other_name(film.title)))


def film_and_series(w: World) -> Pair:
    film = w.film()
    return two(w, film, w.shown(film, kind="series", director=None))


def begun_again(w: World) -> Pair:
    """A show of the same name, years after the first had ended."""
    film = show(w)
    year = (film.end_year or 0) + w.random.randrange(2, 30)
    page = replace(w.shown(film), year=year, end_year=None, director=w.someone_else(film.director))
    page.seasons = w.random.choice((None, film.seasons, w.random.randrange(1, 9)))
    return two(w, film, page)


def begun_again_by_the_same(w: World) -> Pair:
    pair = begun_again(w)
    return replace(pair, theirs=replace(pair.theirs, director=pair.ours.director, year=(pair.theirs.year or 0) + 3))


def season_with_a_name(w: World) -> Pair:
    """Each season of an anthology has a name, and is listed beside the series."""
    film = show(w)
    page = w.shown(film, title=f"{film.title}: {w.random.choice(SUBTITLES)}", end_year=None, seasons=None)
    page.kind = w.random.choice(("season", "series"))
    page.year = (film.year or 0) + w.random.randrange(2, 5)
    return two(w, film, page)


def season_of_a_series(w: World) -> Pair:
    """A season of the same title, and of the same year as its series."""
    film = show(w)
    return two(w, film, w.shown(film, title=w.one_of(film.title, f"{film.title}: Season 1"), kind="season"))


def other_id(w: World) -> Pair:
    film = w.film()
    return two(w, film, w.shown(film, imdb_id=w.film().imdb_id, runtime=w.random.randrange(78, 170)))


def wrong_link(w: World) -> Pair:
    """Wikidata names a page that has become another film's: its old slug is that of the remake now."""
    film = w.film()
    made = two(
        w,
        film,
        w.shown(
            film,
            year=(film.year or 0) + w.random.randrange(8, 50),
            director=w.someone_else(film.director),
            runtime=w.random.randrange(78, 170),
        ),
    )
    if w.chance(0.4):
        made.theirs.title = w.other_name(film.title)
    made.evidence = "wikidata"
    return made


def wrong_id(w: World) -> Pair:
    """A page names the id of a pilot or a dub."""
    film = w.film()
    page = w.shown(w.film(w.other_name(film.title)), imdb_id=film.imdb_id)
    page.year = (film.year or 0) + w.random.choice((-6, -3, 2, 4, 9))
    return two(w, film, page)


def other_script(w: World) -> Pair:
    (script, _), (_, latin) = w.foreign_script(), w.foreign_script()
    film = w.film(latin)
    page = w.shown(film, title=script, director=w.someone_else(film.director))
    return two(w, film, page)


def relative(w: World) -> Pair:
    """A namesake of the same year, by somebody of the same family name."""
    film = w.film()
    first, last = (film.director or "").split()
    others = [name for name in FIRST if name[0] != first[0]]
    return two(w, film, w.shown(film, director=f"{w.random.choice(others)} {last}"))


def hardly_known(w: World) -> Pair:
    """A film of which the page shows nothing that would tell it from one that only a few people have seen."""
    film = replace(w.film(), votes=w.random.randrange(5, 100))
    return two(w, film, w.shown(film, director=None, runtime=w.random.randrange(78, 170)))


def title_in_a_title(w: World) -> Pair:
    """Words in common, and a runtime by chance; the director is not known."""
    film = w.film()
    page = w.shown(film, title=f"{w.random.choice(NAMES)} and {film.title}", director=None)
    return two(w, film, page)


def shared_word(w: World) -> Pair:
    place = w.random.choice(NAMES)
    one, other = w.random.sample(NOUNS, 2)
    film = w.film(f"{place}'s {one}")
    return two(w, film, w.shown(film, title=f"{place}'s {other}"))


def pair(w: World, ours: Side, theirs: Side) -> Pair:
    site: Site = "metacritic" if w.chance(0.5) else "rottentomatoes"
    evidence: IdSource | None = w.random.choice((None, "guess", "list", "sitemap"))
    return Pair(case="", same=True, ours=ours, theirs=theirs, site=site, evidence=evidence)


def two(w: World, ours: Side, theirs: Side) -> Pair:
    return replace(pair(w, ours, theirs), same=False)


SAME: dict[Callable[[World], Pair], float] = {
    plain: 12, punctuation: 10, accents: 6, british: 5, numeral: 8, subtitle: 8, festival: 8, released_again: 8,
    romanised: 8, same_script: 4, translated: 10, translated_without_a_trace: 1, directors_name: 4, other_cut: 3,
    series: 3, short: 2, linked_from_elsewhere: 6, bracketed: 6, whose_film: 2, signs: 3, late_release: 4,
    one_of_two_family_names: 3,
}  # fmt: skip
"""How often each comes, beside the others."""
OTHER: dict[Callable[[World], Pair], float] = {
    sequel: 10, sequel_by_subtitle: 8, two_subtitles: 5, spin_off: 6, remake: 12, remake_by_the_same_director: 4,
    remake_in_the_same_year: 12, namesake: 8, undated: 4, lookalike: 8, other_film_of_the_director: 6, film_and_series: 4,
    other_id: 4, wrong_link: 5, wrong_id: 3, other_script: 5, shared_word: 4, twin: 0.2, relative: 2, hardly_known: 3,
    title_in_a_title: 1,
}  # fmt: skip


SAME_SERIES: dict[Callable[[World], Pair], float] = {series: 4, series_by_a_later_year: 4, mini_series: 2, special: 2}
OTHER_SERIES: dict[Callable[[World], Pair], float] = {
    begun_again: 4, begun_again_by_the_same: 1, season_with_a_name: 3, season_of_a_series: 2, film_and_series: 1,
}  # fmt: skip


def labelled_pairs(
    seed: int,
    count: int,
    cases_of_same: dict[Callable[[World], Pair], float] = SAME,
    cases_of_other: dict[Callable[[World], Pair], float] = OTHER,
) -> list[Pair]:
    """Return `count` pairs, half of them one film."""
    world = World(seed)
    made: list[Pair] = []
    for cases, number in ((cases_of_same, count - count // 2), (cases_of_other, count // 2)):
        for case in world.random.choices(list(cases), weights=list(cases.values()), k=number):
            labelled = replace(case(world), case=case.__name__)
            if labelled.same and labelled.theirs.year is not None and world.chance(0.1):
                labelled.theirs.year += world.random.choice((1, -1))  # sites' years are off by one for any kind of film
            made.append(labelled)
    return made
