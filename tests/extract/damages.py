"""Pages with one key, box or label removed, renamed or emptied at a time, and what that may do to what is read."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.imdb_title import KEYS
from moviecrawler.extract.pages import read_page
from moviecrawler.fields import PLAIN_NAMES, score_facts_told, told_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import Movie, Page

_SCRIPT = re.compile(rb"(<script\b[^>]*>)(\s*[\[{].*?)(</script)", re.DOTALL | re.IGNORECASE)
_ANY_SCRIPT = re.compile(rb"<(script|style)\b.*?</\1\s*>|<!--.*?-->", re.DOTALL | re.IGNORECASE)
_NAMED = re.compile(rb"""\s(?:class|id|data-testid|data-qa|itemprop|slot|property|rel|name|type)=("[^"]*"|'[^']*')""")
_NAME = re.compile(rb"[A-Za-z_][\w:.-]{2,60}")
_VALUE = re.compile(rb"http|(?:nm|tt|rm|co|ch|vi)\d|\d")
_LABEL = re.compile(
    rb"(?:<(?:h4|h5|dt|th)\b[^<>]*|<\w+\b[^<>]*label[^<>]*)>\s*([A-Z][A-Za-z()/ ]{2,30}:?)\s*<|>\s*([A-Z][A-Za-z()/ ]{2,30}:)\s*<"
)
_EMPTY: tuple[Any, ...] = (None, "", [], {})


@dataclass(slots=True)
class Damage:
    """One changed copy of a page."""

    name: str
    body: bytes
    may_state_absence: bool = False
    """Whether the damage itself writes what pages write for "none"."""


def damages(body: bytes, seed: str, most: int | None) -> Iterator[Damage]:
    """Yield damaged copies of a page: all, or a sample of `most`, which is the same for the same `seed`."""
    makers = [*_of_scripts(body), *_of_markup(body)]
    if most is not None and len(makers) > most:
        makers = random.Random(seed).sample(makers, most)  # noqa: S311 - the same sample in every run
    for maker in makers:
        damage = maker()
        if damage.body != body:
            yield damage


def states(body: bytes, url: str | None = None) -> dict[str, Any] | None:
    """Return what is read of each field: a value, "absent" or "silent"; None when the page is refused or no title's."""
    try:
        page = read_page(body, url)
    except ExtractionError:
        return None
    return None if page.movie is None or page.movie.site_id is None else _states(page.movie) | _of_seasons(page)


def _states(movie: Movie) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: "absent"
        for name in {*PLAIN_NAMES, *told_by(movie.site, movie.kind)}
        if "." not in name or name in told_by(movie.site, movie.kind)
    }
    found |= {name: value for name in PLAIN_NAMES if (value := getattr(movie, name)) not in (None, [], {})}
    for role in ("director", "writer", "creator", "cast"):
        if people := movie.people(role):
            found[f"credits.{role}"] = [(c.name, c.character, c.person_id) for c in people]
    for score in movie.scores:
        found[f"scores.{score.kind}"] = score.value
    for name in score_facts_told(movie):
        _, kind, fact = name.split(".")
        value = getattr(movie.score(kind), fact)  # type: ignore[arg-type]
        found[name] = "absent" if value in (None, []) else value
    for relation in {title.relation for title in movie.related}:
        found[f"related.{relation}"] = [(t.site_id, t.title) for t in movie.related if t.relation == relation]
    for amount in movie.amounts:
        found[f"amounts.{amount.kind}"] = (amount.value, amount.currency)
    found |= dict.fromkeys(movie.silent, "silent")
    if movie.poster_url:
        found["poster_url"] = "a poster"  # of which a page has several sizes
    return found | {"title": movie.title, "site_id": movie.site_id, "kind": movie.kind}


def _of_seasons(page: Page) -> dict[str, Any]:
    """Return what a series' page says of its seasons."""
    found: dict[str, Any] = {}
    for season in page.seasons:
        fields = {name: getattr(season, name) for name in ("year", "release_date", "episode_count")}
        for score in season.scores:
            fields |= {score.kind: score.value, f"{score.kind}.count": score.count}
        found |= {f"seasons.{season.site_id}.{name}": value for name, value in fields.items() if value is not None}
    return found


def faults(healthy: dict[str, Any], damaged: dict[str, Any], damage: Damage) -> list[str]:
    """Return what the damaged page must not say: another value, or that there is none, of what it doesn't tell any more."""
    found = []
    for field in healthy.keys() | damaged.keys():
        before, after = healthy.get(field, "not told"), damaged.get(field, "not told")
        if before == "silent" or after in (before, "silent") or (field.count(".") > 1 and after == "not told"):
            continue
        if damage.may_state_absence and (after == "absent" or _without_parts(after) == _without_parts(before)):
            continue
        found.append(f"{field}: {before!r:.90} became {after!r:.90}")
    return found


def assert_cut_page_says_the_same_or_less(body: bytes, url: str | None) -> None:
    """Cut a page at a hundred places. What is left must not say anything else: a shorter list, another value, that there is none."""
    whole = read_page(body, url)
    for end in range(0, len(body), max(1, len(body) // 100)):
        try:
            page = read_page(body[:end], url)
        except ExtractionError:
            continue
        # Nothing tells that a page goes on which ends between two rows.
        assert page.listing == whole.listing or body[:end].endswith(b">"), end
        assert (page.movie is None) == (whole.movie is None), end
        if page.movie is not None and whole.movie is not None:
            before, after = (_states(found.movie) | _of_seasons(found) for found in (whole, page) if found.movie)
            assert faults(before, after, Damage("cut", b"")) == [], end


def _without_parts(value: Any) -> Any:
    """Return the names of people, of whom a page may say that they play nobody in particular."""
    return (
        [person[0] for person in value] if isinstance(value, list) and value and isinstance(value[0], tuple) else value
    )


# --- Scripts --------------------------------------------------------------------------------------------------------


def _of_scripts(body: bytes) -> Iterator[Any]:
    if body[:1] in b"{[":
        yield from _of_json(body, 0, len(body), "json")
        return
    for script in _SCRIPT.finditer(body):
        tag = script[1].decode(errors="replace")[:60]
        if b"json" in script[1] or b"__N" in script[1] or b"score" in script[1]:
            yield from _of_json(body, script.start(2), script.end(2), tag)


def _of_json(body: bytes, start: int, end: int, where: str) -> Iterator[Any]:
    raw = body[start:end]
    try:
        data = json.loads(raw)
    except ValueError:
        return
    paths = list(_paths(data, (), is_devalue="NUXT" in where or (where == "json" and isinstance(data, list))))
    for key in sorted({path[-1] for path in paths if isinstance(path[-1], str)}):
        quoted = json.dumps(key).encode()

        def renamed(key: str = key, quoted: bytes = quoted) -> Damage:
            changed = re.sub(re.escape(quoted) + rb"(\s*:)", lambda found: quoted[:-1] + b'Z"' + found[1], raw)
            return Damage(f"{where}: {key} renamed everywhere", body[:start] + changed + body[end:])

        yield renamed
    for path in paths:
        for change in ("removed", "renamed", "emptied"):

            def edited(path: tuple[str | int, ...] = path, change: str = change) -> Damage:
                return _edit(body, start, end, path, change, where)

            yield edited


def _edit(body: bytes, start: int, end: int, path: tuple[str | int, ...], change: str, where: str) -> Damage:
    data = json.loads(body[start:end])
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    last, may_state_absence, how = path[-1], False, change
    if change == "removed":
        del holder[last]
    elif change == "renamed" and isinstance(last, str):
        holder[f"{last}Z"] = holder.pop(last)
    else:
        value = random.Random(str(path)).choice(_EMPTY)  # noqa: S311
        holder[last], may_state_absence, how = value, value in (None, []), f"emptied to {value!r}"
    name = f"{where}: {'.'.join(map(str, path))} {how}"
    raw = json.dumps(data, ensure_ascii=False).replace("</", r"<\/").encode(errors="surrogatepass")
    return Damage(name, body[:start] + raw + body[end:], may_state_absence)


def _paths(data: Any, at: tuple[str | int, ...], *, is_devalue: bool) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths to all members of objects; of lists only the first and the last item are entered."""
    if isinstance(data, dict):
        for key, value in data.items():
            if at[-1:] in (("aboveTheFoldData",), ("mainColumnData",)) and key not in KEYS:
                continue
            if key in {"__typename", "@context"} or (
                at[-1:] == ("pageProps",) and key not in {"aboveTheFoldData", "mainColumnData", "contentData"}
            ):
                continue
            yield (*at, key)
            yield from _paths(value, (*at, key), is_devalue=is_devalue)
    elif isinstance(data, list):
        places = range(len(data)) if is_devalue else sorted({0, len(data) - 1} & set(range(len(data))))
        for place in places:
            if isinstance(data[place], dict | list):
                yield from _paths(data[place], (*at, place), is_devalue=is_devalue)


# --- Markup ---------------------------------------------------------------------------------------------------------


def _of_markup(body: bytes) -> Iterator[Any]:
    if body[:1] in b"{[":
        return
    hidden = [found.span() for found in _ANY_SCRIPT.finditer(body)]
    markup = _ANY_SCRIPT.sub(b"", body)
    names = sorted(
        {name for found in _NAMED.finditer(markup) for name in _NAME.findall(found[1]) if not _VALUE.match(name)}
    )
    for name in names:

        def renamed(name: bytes = name) -> Damage:
            pattern = re.compile(rb"(?<![\w:.-])" + re.escape(name) + rb"(?![\w:.-])")
            return Damage(
                f"{name.decode()} renamed in tags", _in_tags(body, hidden, lambda tag: pattern.sub(b"zz", tag))
            )

        def emptied(name: bytes = name) -> Damage:
            pattern = re.compile(rb"(<(\w+)\b[^<>]*[\"'\s]" + re.escape(name) + rb"[\"'\s][^<>]*>)[^<]+(</\2>)")
            return Damage(f"{name.decode()} emptied", _outside(body, hidden, lambda part: pattern.sub(rb"\1\3", part)))

        yield renamed
        yield emptied
    for label in sorted({found[1] or found[2] for found in _LABEL.finditer(markup)}):

        def relabelled(label: bytes = label) -> Damage:
            pattern = re.compile(rb"(>\s*)" + re.escape(label) + rb"(\s*<)")
            return Damage(
                f"label {label.decode()!r} renamed",
                _outside(
                    body, hidden, lambda part: pattern.sub(rb"\1Zz" + label[::-1].replace(b":", b"") + rb":\2", part)
                ),
            )

        yield relabelled


def _outside(body: bytes, hidden: list[tuple[int, int]], change: Any) -> bytes:
    parts, start = [], 0
    for begin, end in hidden:
        parts += [change(body[start:begin]), body[begin:end]]
        start = end
    return b"".join([*parts, change(body[start:])])


def _in_tags(body: bytes, hidden: list[tuple[int, int]], change: Any) -> bytes:
    tag = re.compile(rb"<[a-zA-Z][^<>]*>")
    return _outside(body, hidden, lambda part: tag.sub(lambda found: change(found[0]), part))
