"""The words that the replica's movies, people and pages are made of. All of it is invented."""

from __future__ import annotations

import tomllib

from moviecrawler.package_files import read_package_file

_LISTS = tomllib.loads(read_package_file("moviecrawler.replica", "words.toml"))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADJECTIVES, NOUNS, PLACES = _words(_LISTS["adjectives"]), _words(_LISTS["nouns"]), _words(_LISTS["places"])
FIRST_NAMES, LAST_NAMES = _words(_LISTS["first_names"]), _words(_LISTS["last_names"])
CHARACTERS, GENRES, FILLER = _words(_LISTS["characters"]), _words(_LISTS["genres"]), _words(_LISTS["filler"])

TITLE_FORMS = (
    *("The {core}",) * 7,
    *("{core}",) * 6,
    *("{article} {core}",) * 2,
    *("{core}: {subtitle}",) * 2,
    *("{core} {number}",) * 2,
    "{owner}'s {core}",
)
"""What titles look like around their words; the repeated ones are the more frequent."""

SUBTITLES = (
    "The Long Way Home",
    "A Winter's Tale Untold",
    "Beyond the Last Station",
    "The Return",
    "Origins Unknown",
    "An Evening in Three Acts",
    "What the Tide Brought",
    "The Final Chapter",
    "Dawn of the Seventh Day",
    "Letters Never Sent",
    "No Way Back",
)

OWNERS = ("Marta", "Old Tom", "Dr. Elric", "Señor Vidal", "Aunt Zoë", "Captain Lund", "Jonah", "Mrs. Harrow")
"""Owners that stand in titles, as in "Marta's Lamp"."""

FOREIGN_TITLES = (
    (
        _words("静かな 青い 最後の 遠い 失われた 冬の 見えない 燃える 忘れられた 白い 真夜中の"),
        _words("港 鏡 駅 灯台 手紙 庭 海 旅人 約束 影 歌 橋 森"),
        "",
        ("Japan", "Japanese", "JP", "ja"),
    ),
    (
        _words("Тихая Синяя Последняя Далёкая Забытая Зимняя Тайная Белая Долгая Ночная Чужая"),
        _words("гавань станция дорога песня река башня тень звезда комната клятва весна птица"),
        " ",
        ("Russia", "Russian", "RU", "ru"),
    ),
    (
        _words("조용한 푸른 마지막 먼 잃어버린 겨울의 하얀 숨겨진 오래된 붉은 새벽의"),
        _words("항구 거울 편지 등대 정원 바다 약속 그림자 노래 다리 숲 여행자"),
        " ",
        ("South Korea", "Korean", "KR", "ko"),
    ),
)
"""Titles in other scripts: first words, second words, what joins them, and where such a movie is from."""

ORIGINAL_TITLES = (
    ("Le dernier", "château de la forêt", ("France", "French", "FR", "fr")),
    ("La maison", "d'été oubliée", ("France", "French", "FR", "fr")),
    ("El último", "viaje del niño", ("Spain", "Spanish", "ES", "es")),
    ("Die stille", "Straße über den Dächern", ("Germany", "German", "DE", "de")),
    ("Den lange", "vinter på øya", ("Norway", "Norwegian", "NO", "no")),
    ("Žlutý", "dům u řeky", ("Czechia", "Czech", "CZ", "cs")),
    ("O último", "verão em São Vidal", ("Portugal", "Portuguese", "PT", "pt")),
)
"""Original titles of movies that are shown under an English one: a beginning, an end, and where they are from."""

ENGLISH_COUNTRIES = (
    ("United States", "English", "US", "en"),
    ("United States", "English", "US", "en"),
    ("United States", "English", "US", "en"),
    ("United Kingdom", "English", "GB", "en"),
    ("Canada", "English", "CA", "en"),
    ("Australia", "English", "AU", "en"),
)
"""Where the other movies are from: country, language, and the two letters of each."""

CHARACTER_TITLES = ("", "", "", "", "Dr. ", "Captain ", "Young ", "Mrs. ", "Inspector ", "Old ")

CERTIFICATES = ("R", "PG-13", "PG-13", "PG", "R", "G", "Not Rated", "PG", "R", "NC-17")

HEROES = ("A retired watchmaker", "Two estranged sisters", "A young cartographer", "The last pianist of a small town")
DEEDS = ("must cross", "returns to", "tries to save", "hides a secret from", "inherits half of", "is banished from")
TROUBLES = (
    'before the "long night" begins.',
    "while an old rival closes in.",
    "and finds that nobody there remembers the war.",
    "with nothing but a map, a mule & a borrowed violin.",
    "as the river rises for the third time in a year.",
)
