"""When two titles are spellings of one: in other letters, with or without an article, a subtitle or an accent. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from anyascii import anyascii
from rapidfuzz.fuzz import ratio

from moviecrawler.texts import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIMILAR = 80.0
"""Per cent of common letters; from there on, two words may be spellings of one."""
_SHORTEST_SIMILAR = 5
"""Letters; of four, one that differs makes another word ("Cars", "Cats")."""

_SEVERAL = 3
"""Words."""
_LONG = 14
"""Letters."""

# Letters that Unicode doesn't take apart into a base and an accent, and signs that are words.
_SPELT = str.maketrans(
    {**dict(zip("øłđðı", "olddi", strict=True)), "þ": "th", "æ": "ae", "œ": "oe", "&": " and ", "+": " and "}
)
_ACCENTS = re.compile("[\u0300-\u036f]")  # the marks of other scripts are vowels, and stay
_INSIDE_WORDS = re.compile(r"['’‘ʼ`]|(?<=\w)\*(?=\w)|(?<!\w\w)(?<!\d)\.|\.(?!\w\w|\d)|(?<=\d),(?=\d\d\d(?!\d))")  # noqa: RUF001
"""What no word ends at: "Ocean's", "S.W.A.T.", "M*A*S*H", "20,000"; a full stop between two words is a space: "Ra.One"."""
_FRACTION = re.compile("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])")  # "8½" is "8 1/2"
_SIGNS_FOR_LETTERS = re.compile(
    r"(?<=[a-z])[$@¢€£](?=[a-z])|(?<=[a-z])[$¢]+(?!\w)|(?<!\w)[$¢](?=[a-z])|(?<=[a-z])[0134578](?=[a-z])"
)
"""Signs and single digits that stand for a letter they look like, inside a word ("Se7en") or, of money, at its edge."""
_LETTERS_MEANT = dict(zip("$¢€£@01345", "scelaoieas", strict=True)) | {"7": "v", "8": "b"}
_LABEL = re.compile(r"\s*(?:\((?:18|19|20)\d\d\)|\[[^\]]*\])\s*$")  # "Dune (2021)", "Metropolis [re-release]"
_BETWEEN_PARTS = re.compile(r":\s+|：|\s+[-–—]\s+")  # noqa: RUF001 - what stands before a subtitle
_BRACKETS = re.compile(r"(?<!\w)\(([^()]+)\)(?!\w)")
_BETWEEN_TITLES = re.compile(r"\s+/\s+|\s+a\.?k\.?a\.?\s+", re.IGNORECASE)
_NOTE = re.compile(
    r"(?:the )?(?:(?:part|volume|chapter|episode|season)\b.*|.*\b(?:cut|version|edition|remastered|restored|release|dubbed"
    r"|subtitled|uncut|documentary|movie|film|imax|3d|tv|live|short|miniseries|feature)|[\d ]+)"
)
"""What stands in brackets and is no second title."""
_POSSESSOR = re.compile(r"^(?:[^\s:]+\s+){0,2}?[^\s:]+(?:['’]s|s['’])\s+(?=\S)")  # noqa: RUF001 - whose film it is: "Ida Brandt's"
_MERE_NUMBER = re.compile(r"(?:(?:part|volume|chapter|episode|season)\s)?(\d+)")
_WORDS = re.compile(r"[a-z]+|\d+")
_LETTER_MEETS_DIGIT = re.compile(r"(?<=\d)(?=[^\d\s])|(?<=[^\d\s])(?=\d)")
_ARTICLES = ("the ", "a ", "an ")
_SPELT_ARTICLES = (
    "the a an der die das ein eine le la les l un une el los las una il lo gli i uno o os as um uma het een de den det"
)
_ALL_ARTICLES = frozenset(_SPELT_ARTICLES.split())
_COUNTED = frozenset({"part", "volume", "chapter", "episode", "season"})
_NOT_DISTINCTIVE = _ALL_ARTICLES | {"and", "of", "in", "on", "to", "for", "at", "with", "my", "your", "part"}
_INVERTED = re.compile(r"^(.+), (the|a|an|der|die|das|le|la|les|el|los|las|il|lo|gli|un|une)$", re.IGNORECASE)
"""As in a card index: "Godfather, The"."""
_UNITS = "one two three four five six seven eight nine"
_TEENS = "eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "ten twenty thirty forty fifty sixty seventy eighty ninety"
_ROMAN = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
_NUMERALS = {
    word: first + step * place
    for words, first, step in ((_UNITS, 1, 1), (_TEENS, 11, 1), (_TENS, 10, 10), (_ROMAN, 1, 1))
    for place, word in enumerate(words.split())
}
_BEFORE_UNITS, _AFTER_TENS = frozenset(_TENS.split()), frozenset(_UNITS.split())
_SHORT_FORMS = "dr=doctor jr=junior mr=mister mt=mount n=and pt=part sr=senior st=saint vol=volume vs=versus"
_WRITTEN_OUT = dict(pair.split("=") for pair in _SHORT_FORMS.split())
"""Short forms, and the words that they stand for."""

# The ways in which one sound of another script is written in Latin letters: "Zorbas" is spelt "Zormpas" in Greek, and a
# Russian "Юрий" is Yuri, Jurij or Iurii. Longer ones first.
_HEARD = (
    "shch=s sch=s tch=c dzh=j tz=c zh=z kh=h ch=c sh=s ts=c ph=f th=t mp=b nt=d ks=x ou=u oo=u"
    " ya=ia ja=ia yu=iu ju=iu yo=io jo=io ye=e je=e y=i j=i w=v q=k '="
)
_SOUNDS = tuple(pair.split("=") for pair in _HEARD.split())
_VOWELS = re.compile("[aeiouy]")
_DOUBLED = re.compile(r"([a-z])\1+")


@lru_cache(maxsize=4096)  # a title's forms are asked for one after the other
def normalise(title: str) -> str:
    """Return a title in the form in which all spellings of it are equal.

    No difference is made by case, accents, punctuation, an English article in front (or behind a comma), roman numerals or
    number words instead of digits, signs instead of letters, "&" for "and", short forms such as "Dr.", and a year or a
    label in brackets behind. Letters of every script stay, and a title of nothing but signs stays as it is.

    >>> normalise("The Fast & the Furious"), normalise("Rocky II"), normalise("Amélie (2001)"), normalise("Alien³")
    ('fast and the furious', 'rocky 2', 'amelie', 'alien 3')
    >>> normalise("Godfather, The"), normalise("Sal7ed"), normalise("20,000 Leagues"), normalise("Twenty-One")
    ('godfather', 'salved', '20000 leagues', '21')
    """
    shown = (_LABEL.sub("", title) or title).strip(" ,")
    plain = " ".join(_plain_words(split_words(_INVERTED.sub(r"\2 \1", shown))))
    for article in _ARTICLES:
        plain = plain.removeprefix(article)
    return plain or fold(title.casefold())


def _plain_words(words: list[str]) -> Iterator[str]:
    """Yield words with numbers as digits and short forms written out; "twenty-one" is one number, "3-D" one word."""
    left = iter([*words, ""])
    word = next(left)
    while word:
        following = next(left)
        if word in _BEFORE_UNITS and following in _AFTER_TENS:
            yield str(_NUMERALS[word] + _NUMERALS[following])
            following = next(left)
        elif (word, following) == ("3", "d"):
            yield "3d"
            following = next(left)
        else:
            yield str(_NUMERALS.get(word) or _WRITTEN_OUT.get(word, word))
        word = following


def split_words(text: str) -> list[str]:
    """Return a text's words in small letters, without accents; numbers are words of their own."""
    if text.isascii():
        plain = text.lower()
    else:
        plain = unicodedata.normalize("NFKD", _FRACTION.sub(" ", text)).casefold()
        plain = _ACCENTS.sub("", plain)
    plain = _SIGNS_FOR_LETTERS.sub(lambda found: "".join(map(_LETTERS_MEANT.__getitem__, found[0])), plain)
    plain = _INSIDE_WORDS.sub("", plain.translate(_SPELT))
    if plain.isascii():
        return _WORDS.findall(plain)
    plain = unicodedata.normalize("NFC", plain)
    kept = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in plain)  # letters, numbers, marks
    return _LETTER_MEETS_DIGIT.sub(" ", kept).split()


def names(title: str) -> list[str]:
    """Return what a title is called, normalised: the whole of it and, where it has a second title in brackets, each.

    >>> names("Even the Rain (También la lluvia)"), names("Salt (Part Two)")
    (['even the rain tambien la lluvia', 'even the rain', 'tambien la lluvia'], ['salt part 2'])
    """
    whole = normalise(title)
    if "(" not in title and not _BETWEEN_TITLES.search(title):
        return [whole]
    return list(dict.fromkeys([whole, *map(normalise, _shown_names(title))]))


def _shown_names(title: str) -> list[str]:
    """Return the titles of which a title is made, as they are shown: itself alone unless it has others in brackets."""
    title = _LABEL.sub("", title) or title
    inner = [found for found in _BRACKETS.findall(title) if not _NOTE.fullmatch(normalise(found))]
    outer = title
    for found in inner:
        outer = outer.replace(f"({found})", " ")
    return [each.strip(" ,") for text in (outer, *inner) for each in _BETWEEN_TITLES.split(text) if each.strip(" ,")]


def parts(title: str) -> Iterator[str]:
    """Yield what else a title may be called, normalised: without its subtitle, by nothing but that, without whose it is.

    >>> list(parts("Brewick: The Long Night")), list(parts("Ida Brandt's Lamp")), list(parts("Storm 3-D"))
    (['brewick', 'long night', 'brewick the long night'], ['lamp'], ['storm', 'storm 3'])
    """
    for shown in _shown_names(title):
        found = [part for part in _BETWEEN_PARTS.split(shown) if part]
        if len(found) > 1:
            number = _MERE_NUMBER.fullmatch(normalise(found[-1]))
            # "Dune: Part One" is called "Dune" as well; "Dune: Part Two" is not, and many are called "Part Two".
            if number is None or number[1] == "1":
                yield normalise(found[0])
            if number is None:
                yield normalise(found[-1])
                yield normalise(f"{found[0]} {found[-1]}")
        if (bare := _POSSESSOR.sub("", shown)) != shown:
            yield normalise(bare)
        if (plain := normalise(shown)).endswith(" 3d"):
            yield from (plain.removesuffix(" 3d"), plain.removesuffix("d"))


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


def similar_key(name: str) -> str:
    """Return a text that a normalised title shares with every title that is `similar` to it, but for the spaces in it.

    >>> similar_key("theatre of brewick") == similar_key("the theaters of brewick")
    True
    """
    bare = (word for word in name.split() if word not in _ALL_ARTICLES)
    return " ".join(word if len(word) < _SHORTEST_SIMILAR else _consonants(word) for word in bare)


def contains(longer: str, shorter: str) -> bool:
    """Return whether a normalised title's words stand in another's in their order, without what makes it another part.

    >>> contains("ida brandts salt harbour", "salt harbour"), contains("salt harbour 2", "salt harbour")
    (True, False)
    >>> contains("brewick a year inside the harbour", "brewick inside the harbour"), contains("salt harbour", "harbour salt")
    (True, False)
    """
    ours, theirs = longer.split(), shorter.split()
    if _numbers(ours) != _numbers(theirs) or len(shorter) < _SHORTEST_SIMILAR:
        return False
    left = iter(ours)
    whole = all(word in left for word in theirs)
    return whole and (len(theirs) >= _SEVERAL or f" {shorter} " in f" {longer} ")


def without_numbers(name: str) -> str:
    """Return a normalised title without its numbers and what counts them.

    >>> without_numbers("harbour part 2"), without_numbers("1917")
    ('harbour', '')
    """
    return " ".join(word for word in name.split() if not word.isdigit() and word not in _COUNTED)


def is_distinctive(name: str) -> bool:
    """Return whether a normalised title has so much to it that two films seldom share it by chance.

    >>> is_distinctive("the colour of some harbours"), is_distinctive("the harbour"), is_distinctive("salt harbour")
    (True, False, False)
    """
    words = telling_words(name)
    return words >= _SEVERAL or (words > 1 and len(name) >= _LONG)


def telling_words(name: str) -> int:
    """Return how many words of a normalised title say something of it.

    >>> telling_words("the colour of some harbours"), telling_words("the harbour"), telling_words("to the harbour")
    (3, 1, 1)
    """
    return sum(word not in _NOT_DISTINCTIVE for word in name.split())


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
