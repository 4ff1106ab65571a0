"""When two titles are spellings of one: in other letters, with or without an article, a subtitle or an accent. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from anyascii import anyascii
from rapidfuzz.fuzz import ratio

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIMILAR = 80.0
"""Per cent of common letters; from there on, two words may be spellings of one."""
_SHORTEST_SIMILAR = 5
"""Letters; of four, one that differs makes another word ("Cars", "Cats")."""

# Letters that Unicode doesn't take apart into a base and an accent, and signs that are words.
_SPELT = str.maketrans(
    {**dict(zip("øłđðı", "olddi", strict=True)), "þ": "th", "æ": "ae", "œ": "oe", "&": " and ", "+": " and "}
)
_ACCENTS = re.compile("[\u0300-\u036f]")  # the marks of other scripts are vowels, and stay
_INSIDE_WORDS = re.compile("['’‘ʼ`.]")  # noqa: RUF001 - "Ocean's", "S.W.A.T."
_LABEL = re.compile(r"\s*(?:\((?:18|19|20)\d\d\)|\[[^\]]*\])\s*$")  # "Dune (2021)", "Metropolis [re-release]"
_BETWEEN_PARTS = re.compile(r":\s+|：|\s+[-–—]\s+|\s*[()]\s*")  # noqa: RUF001 - what stands before a subtitle
_MERE_NUMBER = re.compile(r"(?:(?:part|vol|volume|chapter|episode|season)\s)?(\d+)")
_WORDS = re.compile(r"[a-z]+|\d+")
_LETTER_MEETS_DIGIT = re.compile(r"(?<=\d)(?=[^\d\s])|(?<=[^\d\s])(?=\d)")
_ARTICLES = ("the ", "a ", "an ")
_SPELT_ARTICLES = (
    "the a an der die das ein eine le la les l un une el los las una il lo gli i uno o os as um uma het een de den det"
)
_ALL_ARTICLES = frozenset(_SPELT_ARTICLES.split())
_INVERTED = re.compile(r"^(.+), (the|a|an|der|die|das|le|la|les|el|los|las|il|lo|gli|un|une)$", re.IGNORECASE)
"""As in a card index: "Godfather, The"."""
_NUMERALS = {
    word: str(number)
    for numerals in (
        "one two three four five six seven eight nine ten",
        "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx",
    )
    for number, word in enumerate(numerals.split(), 1)
}

# The ways in which one sound of another script is written in Latin letters: "Zorbas" is spelt "Zormpas" in Greek, and a
# Russian "Юрий" is Yuri, Jurij or Iurii. Longer ones first.
_SOUNDS = (
    *(("shch", "s"), ("sch", "s"), ("tch", "c"), ("dzh", "j"), ("tz", "c"), ("zh", "z"), ("kh", "h"), ("ch", "c")),
    *(
        ("sh", "s"),
        ("ts", "c"),
        ("ph", "f"),
        ("th", "t"),
        ("mp", "b"),
        ("nt", "d"),
        ("ks", "x"),
        ("ou", "u"),
        ("oo", "u"),
    ),
    *(("ya", "ia"), ("ja", "ia"), ("yu", "iu"), ("ju", "iu"), ("yo", "io"), ("jo", "io"), ("ye", "e"), ("je", "e")),
    *(("y", "i"), ("j", "i"), ("w", "v"), ("q", "k"), ("'", "")),
)
_VOWELS = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([a-z])\1+")


@lru_cache(maxsize=1024)  # a title's forms are asked for one after the other
def normalise(title: str) -> str:
    """Return a title in the form in which all spellings of it are equal.

    No difference is made by case, accents, punctuation, an English article in front (or behind a comma), roman numerals or
    number words instead of digits, "&" for "and", and a year or a label in brackets behind. Letters of every script stay,
    and a title of nothing but signs stays as it is.

    >>> normalise("The Fast & the Furious"), normalise("Rocky II"), normalise("Amélie (2001)"), normalise("Alien³")
    ('fast and the furious', 'rocky 2', 'amelie', 'alien 3')
    >>> normalise("Godfather, The")
    'godfather'
    """
    shown = _INVERTED.sub(r"\2 \1", _LABEL.sub("", title).strip())
    words = [_NUMERALS.get(word, word) for word in split_words(shown)]
    plain = " ".join(words)
    for article in _ARTICLES:
        plain = plain.removeprefix(article)
    return plain or " ".join(title.casefold().split())


def split_words(text: str) -> list[str]:
    """Return a text's words in small letters, without accents; numbers are words of their own."""
    plain = unicodedata.normalize("NFKD", text).casefold().translate(_SPELT)
    plain = unicodedata.normalize("NFC", _INSIDE_WORDS.sub("", _ACCENTS.sub("", plain)))
    if plain.isascii():
        return _WORDS.findall(plain)
    kept = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in plain)  # letters, numbers, marks
    return _LETTER_MEETS_DIGIT.sub(" ", kept).split()


def parts(title: str) -> Iterator[str]:
    """Yield what else a title may be called, normalised: without its subtitle, or by nothing but that."""
    found = [part for part in _BETWEEN_PARTS.split(_LABEL.sub("", title)) if part]
    if len(found) > 1:
        number = _MERE_NUMBER.fullmatch(normalise(found[-1]))
        # "Dune: Part One" is called "Dune" as well; "Dune: Part Two" is not, and many are called "Part Two".
        if number is None or number[1] == "1":
            yield normalise(found[0])
        if number is None:
            yield normalise(found[-1])
            yield normalise(f"{found[0]} {found[-1]}")


def similar(one: str, other: str) -> bool:
    """Return whether two normalised titles are spellings of one, word by word.

    >>> similar("colour of harbours", "color of harbors"), similar("spider man", "spiderman"), similar("la haine", "haine")
    (True, True, True)
    >>> similar("rocky 2", "rocky 3"), similar("salt harbour", "salt labour"), similar("cars", "cats")
    (False, False, False)
    """
    ours, theirs = one.split(), other.split()
    # "Rocky 2" and "Rocky 3" have most letters in common.
    if _numbers(ours) != _numbers(theirs) or min(len(one), len(other)) < _SHORTEST_SIMILAR:
        return False
    if one.replace(" ", "") == other.replace(" ", ""):
        return True
    ours, theirs = ([word for word in words if word not in _ALL_ARTICLES] for words in (ours, theirs))
    if not ours or len(ours) != len(theirs):
        return False
    return all(map(_spelt_alike, ours, theirs))


def similar_words(one: str, other: str) -> bool:
    """Return whether two words in small letters have most letters in common; short ones only when they are equal."""
    if one == other:
        return True
    return min(len(one), len(other)) >= _SHORTEST_SIMILAR and ratio(one, other, score_cutoff=_SIMILAR) > 0


def _spelt_alike(one: str, other: str) -> bool:
    """Return whether two words are spellings of one: similar, and with the same consonants but for an s behind.

    "Theatre" and "theater", "realise" and "realize", "keeper" and "keepers"; not "painter" and "panther", or "lonely" and
    "lovely".
    """
    return similar_words(one, other) and _consonants(one) == _consonants(other)


def _consonants(word: str) -> str:
    return _DOUBLED.sub(r"\1", _VOWELS.sub("", word.removesuffix("s")).replace("z", "s"))


def sound(title: str) -> str:
    """Return roughly how a title sounds, in Latin letters without spaces, whatever script it is written in.

    Only for comparing titles in different scripts: it makes one of many words that are spelt differently on purpose.

    >>> sound("Иди и смотри") == sound("Idi i smotri"), sound("Ζορμπάς") == sound("Zorbas")
    (True, True)
    """
    latin = normalise(title)
    if not is_latin(latin):  # of the title as it is: without its marks, a letter of another script is another letter
        latin = normalise(anyascii(unicodedata.normalize("NFC", title)))
    latin = latin.replace(" ", "")
    for spelt, heard in _SOUNDS:
        latin = latin.replace(spelt, heard)
    return _DOUBLED.sub(r"\1", latin)


def sounds_similar(one: str, other: str) -> bool:
    """Return whether two titles, as `sound` returns them, sound alike."""
    if min(len(one), len(other)) < _SHORTEST_SIMILAR or re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    return ratio(one, other, score_cutoff=_SIMILAR) > 0


def is_latin(normalised: str) -> bool:
    """Return whether a normalised title or name is written in Latin letters, or has no letters at all."""
    return normalised.isascii()


def _numbers(words: list[str]) -> list[str]:
    return [word for word in words if word.isdigit()]
