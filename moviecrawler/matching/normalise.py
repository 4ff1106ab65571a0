"""Normalises titles, and compares their spellings. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from rapidfuzz.fuzz import ratio

from moviecrawler.basics.texts import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIMILAR = 80.0
"""Per cent of common letters from which two words may be spellings of one."""
_SHORTEST_SIMILAR = 5
"""Letters of a word; in a shorter one, each letter matters ("Cars", "Cats")."""

# Letters that Unicode doesn't decompose into a base and an accent, and signs that are words.
_SPELT = str.maketrans(
    {
        **dict(zip("øłđðı", "olddi", strict=True)),
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "$": "s",
        "&": " and ",
        "+": " and ",
    }
)
_ACCENTS = re.compile("[\u0300-\u036f]")  # only Latin accents: marks of other scripts are vowels
_INSIDE_WORDS = re.compile(
    r"['’‘ʼ`]|(?<=\w)\*(?=\w)|(?<!\w\w)(?<!\d)\.|\.(?!\w\w|\d)"  # noqa: RUF001
    r"|(?<=\d),(?=\d\d\d(?!\d))"
)
"""Signs inside words: "Ocean's", "S.W.A.T.", "M*A*S*H", "20,000". The full stop of "Ra.One" is a
space."""
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])")  # "8½" is "8 1/2"
# A label at the end: "Dune (2021)", "Metropolis [re-release]".
LABEL = re.compile(r"\s*(?:\((?:18|19|20)\d\d\)|\[[^\[\]]*\])\s*$")
_BETWEEN_PARTS = re.compile(r":\s+|：|\s+[-–—]\s+")  # noqa: RUF001 - signs before a subtitle
_BRACKETS = re.compile(r"(?<!\w)\(([^()]+)\)(?!\w)")
_BETWEEN_TITLES = re.compile(r"\s+/\s+|\s+a\.?k\.?a\.?\s+", re.IGNORECASE)
_NOTE = re.compile(
    r"(?:the )?(?:(?:part|volume|chapter|episode|season)\b.*"
    r"|.*\b(?:cut|version|edition|remastered|restored|release|dubbed|subtitled|uncut"
    r"|documentary|movie|film|imax|3d|tv|live|short|miniseries|feature)|[\d ]+)"
)
"""Texts in brackets that are not a second title."""
# An owner in front: "Ida Brandt's Lamp".
_POSSESSOR = re.compile(r"^(?:[^\s:]+\s+){0,2}?[^\s:]+(?:['’]s|s['’])\s+(?=\S)")  # noqa: RUF001
_WORDS = re.compile(r"[a-z]+|\d+")
_LETTER_MEETS_DIGIT = re.compile(r"(?<=\d)(?=[^\d\s])|(?<=[^\d\s])(?=\d)")
_ARTICLES = frozenset({"the", "a", "an"})
_SPELT_ARTICLES = (
    "the a an der die das ein eine le la les l un une el los las una il lo gli i uno o os as um uma"
    " het een de den det and"
)
_ALL_ARTICLES = frozenset(_SPELT_ARTICLES.split())
_INVERTED = re.compile(
    r"^(.+), (the|a|an|der|die|das|le|la|les|el|los|las|il|lo|gli|un|une)$", re.IGNORECASE
)
"""As in a card index: "Godfather, The"."""
_UNITS = "one two three four five six seven eight nine"
_TEENS = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety"
_ROMAN_UNITS = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMAN = [tens + unit for tens in ("", "x", "xx", "xxx") for unit in _ROMAN_UNITS]
_WRITTEN = {
    word: first + step * index
    for words, first, step in ((_UNITS, 1, 1), (_TEENS, 11, 1), (_TENS, 10, 10))
    for index, word in enumerate(words.split())
}
_NUMERALS = _WRITTEN | {word: number for number, word in enumerate(_ROMAN) if word}
_ABBREVIATIONS = {
    "ch": "chapter",
    "chap": "chapter",
    "ep": "episode",
    "no": "number",
    "parte": "part",
    "partie": "part",
    "pt": "part",
    "teil": "part",
    "tome": "volume",
    "vol": "volume",
}
"""Words that abbreviate another one in front of a number; elsewhere "vol" is French."""
_COUNTED = frozenset(
    {"part", "volume", "chapter", "episode", "season", "series", "book", "act", "number"}
)
"""Words behind which even a letter is a number."""
_ORDINALS = {"first": "1", "second": "2", "third": "3", "fourth": "4", "fifth": "5"}
_LETTERS = frozenset("ivx")
"""Numerals that are letters, as in "Malcolm X", or words, as in "The King and I"."""
_VERSUS = frozenset({"v", "vs", "versus"})
_THREE_D = re.compile(r"\b3 d\b")
_VOWELS = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([a-z])\1+")


@lru_cache(maxsize=4096)  # a title is normalised several times in a row
def normalise(title: str) -> str:
    """Return a title in a form that is equal for all its spellings.

    It drops case, accents, punctuation, an English article in front (or behind a comma), and a year
    or a label in brackets at the end. Number words beside other words and Roman numerals behind one
    become digits, "&" becomes "and", "vol." in front of a number "volume", and "v." between words
    "vs". Letters of every script stay; so does a title of nothing but signs.

    >>> normalise("The Fast & the Furious"), normalise("Rocky II"), normalise("Salt, Vol. I")
    ('fast and the furious', 'rocky 2', 'salt volume 1')
    >>> normalise("Amélie (2001)"), normalise("Alien³"), normalise("Salt v. Storm")
    ('amelie', 'alien 3', 'salt vs storm')
    >>> normalise("Godfather, The"), normalise("Ten"), normalise("Ten Keys")
    ('godfather', 'ten', '10 keys')
    """
    folded = fold(title)
    shown = (LABEL.sub("", folded) or folded).strip(" ,")
    words = split_words(_INVERTED.sub(r"\2 \1", shown))
    while len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    plain = _THREE_D.sub("3d", " ".join(_spelt_out(words)))
    return plain or folded.casefold()


def _spelt_out(words: list[str]) -> Iterator[str]:
    """Yield the words of a title with numerals as digits, and abbreviations as words."""
    before = ""
    for word, after in zip(words, [*words, ""][1:], strict=True):
        is_number = before in _COUNTED or (before != "" and word not in _LETTERS)
        if (word in _NUMERALS and is_number) or (word in _WRITTEN and after):
            before = str(_NUMERALS[word])
        elif word in _ABBREVIATIONS and (after.isdigit() or after in _NUMERALS or len(after) == 1):
            before = _ABBREVIATIONS[word]
        elif word in _VERSUS and before and after:
            before = "vs"
        else:
            before = word
        yield before


def split_words(text: str) -> list[str]:
    """Return a text's words in small letters, without accents; numbers are words of their own."""
    if text.isascii():
        plain = text.lower()
    else:
        plain = unicodedata.normalize("NFKD", _FRACTION.sub(" ", text)).casefold()
        plain = _ACCENTS.sub("", plain)
    plain = _INSIDE_WORDS.sub("", plain.translate(_SPELT))
    if plain.isascii():
        return _WORDS.findall(plain)
    plain = unicodedata.normalize("NFC", plain)
    # Letters, numbers and marks.
    kept = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in plain)
    return _LETTER_MEETS_DIGIT.sub(" ", kept).split()


def names(title: str) -> list[str]:
    """Return a title normalised, and each of its two titles where it has a second one in brackets.

    >>> names("Even the Rain (También la lluvia)"), names("Salt (Part Two)")
    (['even the rain tambien la lluvia', 'even the rain', 'tambien la lluvia'], ['salt part 2'])
    """
    title = fold(title)
    whole = normalise(title)
    if "(" not in title and not _BETWEEN_TITLES.search(title):
        return [whole]
    return list(dict.fromkeys([whole, *map(normalise, _shown_names(title))]))


def _shown_names(title: str) -> list[str]:
    """Return the titles within a title: itself, or those outside and inside its brackets."""
    title = fold(title)
    title = LABEL.sub("", title) or title
    inner = [found for found in _BRACKETS.findall(title) if not _NOTE.fullmatch(normalise(found))]
    outer = title
    for found in inner:
        outer = outer.replace(f"({found})", " ")
    return [
        each.strip(" ,")
        for text in (outer, *inner)
        for each in _BETWEEN_TITLES.split(text)
        if each.strip(" ,")
    ]


def short_forms(title: str) -> Iterator[str]:
    """Yield the short forms of a title, normalised.

    They are the title without its subtitle, the subtitle alone, and the title without an owner in
    front.

    >>> list(short_forms("Brewick: The Long Night"))
    ['brewick', 'long night', 'brewick the long night']
    >>> list(short_forms("Ida Brandt's Lamp")), list(short_forms("Storm 3-D"))
    (['lamp'], ['storm', 'storm 3'])
    """
    for shown in _shown_names(title):
        found = [part for part in _BETWEEN_PARTS.split(shown) if part]
        if len(found) > 1:
            subtitle = normalise(found[-1])
            number = _part_number(subtitle)
            # "Dune: Part One" is also called "Dune", but "Dune: Part Two" is not, nor is "Dune:
            # Part Two: The Worm"; "Part Two" alone is not a name.
            inner = (normalise(part) for part in found[1:-1])
            numbers = {_part_number(part) for part in inner if not part.startswith("episode ")}
            if numbers | {number} <= {None, "1", "a"}:
                yield normalise(found[0])
            if number is None:
                if _NOTE.fullmatch(subtitle) is None:  # "The Lamp: The Movie" is not called "Movie"
                    yield subtitle
                # "Ice Age 2: The Meltdown" is also called "Ice Age: The Meltdown".
                yield normalise(f"{found[0].rstrip('0123456789')} {found[-1]}")
        if (bare := _POSSESSOR.sub("", shown)) != shown:
            yield normalise(bare)
        if (plain := normalise(shown)).endswith(" 3d"):
            yield from (plain.removesuffix(" 3d"), plain.removesuffix("d"))


def _part_number(subtitle: str) -> str | None:
    """Return the number, or the letter, of the part that a normalised subtitle begins with.

    >>> _part_number("volume 2 storm"), _part_number("the second part"), _part_number("2")
    ('2', '2', '2')
    >>> _part_number("part b"), _part_number("part of the storm"), _part_number("2 towers")
    ('b', None, None)
    >>> _part_number("second storm"), _part_number("old part"), _part_number("2 and 3")
    (None, None, None)
    """
    words = [word for word in subtitle.split() if word != "the"]
    first, second = (*words, "", "")[:2]
    if second in _COUNTED and first in _ORDINALS:
        return _ORDINALS[first]
    if first.removesuffix("s") in _COUNTED or first == "series":
        number = _ORDINALS.get(second) or str(_NUMERALS.get(second, second))
        # A named episode may have been numbered later, as that of "Star Wars" was.
        if first == "episode" and words[2:]:
            return None
        return number if number.isdigit() or len(number) == 1 else None
    number = str(_NUMERALS.get(first, first))
    return number if len(words) == 1 and number.isdigit() else None


def similar(one: str, other: str) -> bool:
    """Return whether two normalised titles are spellings of one, word by word.

    >>> similar("colour of harbours", "color of harbors"), similar("spider man", "spiderman")
    (True, True)
    >>> similar("la haine", "haine")
    True
    >>> similar("rocky 2", "rocky 3"), similar("salt harbour", "salt labour")
    (False, False)
    >>> similar("cars", "cats"), similar("salt 1 2", "salt 12")
    (False, False)
    """
    ours = one.split()
    theirs = other.split()
    # "Rocky 2" and "Rocky 3" have most letters in common.
    if _numbers(ours) != _numbers(theirs) or min(len(one), len(other)) < _SHORTEST_SIMILAR:
        return False
    if one.replace(" ", "") == other.replace(" ", ""):
        return True
    ours = [word for word in ours if word not in _ALL_ARTICLES]
    theirs = [word for word in theirs if word not in _ALL_ARTICLES]
    if not ours or len(ours) != len(theirs):
        return False
    return all(map(_spelt_alike, ours, theirs))


def similar_key(name: str) -> str:
    """Return a key that is equal for normalised titles which are `similar`.

    It may differ when only their spaces do.

    >>> similar_key("theatre of brewick") == similar_key("the theaters of brewick")
    True
    """
    bare = (word for word in name.split() if word not in _ALL_ARTICLES)
    return " ".join(word if len(word) < _SHORTEST_SIMILAR else _consonants(word) for word in bare)


def similar_words(one: str, other: str) -> bool:
    """Return whether two words in small letters have most letters in common.

    For short ones, return whether they are equal.
    """
    if one == other:
        return True
    return (
        min(len(one), len(other)) >= _SHORTEST_SIMILAR
        and ratio(one, other, score_cutoff=_SIMILAR) > 0
    )


def _spelt_alike(one: str, other: str) -> bool:
    """Return whether two words are spellings of one.

    They are similar, and have the same consonants but for an s behind.

    "Theatre" and "theater", "realise" and "realize", "keeper" and "keepers"; not "painter" and
    "panther", or "lonely" and "lovely".
    """
    return similar_words(one, other) and _consonants(one) == _consonants(other)


def _consonants(word: str) -> str:
    return _DOUBLED.sub(r"\1", _VOWELS.sub("", word.removesuffix("s")).replace("z", "s"))


def _numbers(words: list[str]) -> list[str]:
    return [word for word in words if word.isdigit()]
