"""What is read from the pages in the folder `pages`, and from those of the replica."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import to_builtins

from moviecrawler.commands.extract import page_record
from moviecrawler.politeness.blocks import SMALLEST_PAGE
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.sources import Answer, Source
from moviecrawler.sites import SITES
from moviecrawler.sites.ids import parse_title_id
from moviecrawler.sites.pages import read_page

SITE = "filmograph"
PAGES = Path(__file__).with_name("pages")


def filled(value: Any) -> Any:
    """Return data without what has no value."""
    if isinstance(value, list):
        return [filled(member) for member in value]
    if not isinstance(value, dict):
        return value
    members = {name: filled(member) for name, member in value.items()}
    return {name: member for name, member in members.items() if member not in (None, [], {})}


@pytest.mark.parametrize("case", sorted(path.name for path in PAGES.iterdir()))
def test_a_saved_page_is_read_as_written_beside_it(case: str) -> None:
    page = PAGES / case / "page.html"
    if not page.exists():
        pytest.fail(
            f"Next: describe the site in {SITE}/__init__.py. Save the page of a title that you "
            f"know as {page}, and write its address into the meta.json beside it."
        )
    url = json.loads(page.with_name("meta.json").read_text("utf-8"))["url"]
    read = filled(to_builtins(page_record(read_page(page.read_bytes(), url))))
    expected = page.with_name("expected.json")
    if not expected.exists():
        draft = page.with_name("draft.json")
        draft.write_text(json.dumps(read, indent=1, ensure_ascii=False) + "\n", "utf-8")
        pytest.fail(
            f"Next: compare {draft}, which is what was read, with the page in a browser. Mend "
            f"{SITE}/pages.py until it is right, and rename it to {expected.name}."
        )
    assert read == json.loads(expected.read_text("utf-8"))


def test_its_example_is_an_id_and_its_lists_have_readers() -> None:
    profile = SITES[SITE]
    assert parse_title_id(SITE, profile.ids.example) == profile.ids.example
    for known in profile.lists.values():
        assert callable(profile.reader(profile.list_form(known.path).reader))


def test_the_replicas_pages_are_read_as_their_items() -> None:
    collection = Collection(seed=1, titles=20, series=6)
    source = Source(collection, light=True)
    for movie in collection.pages(SITE):
        answer = source.answer(SITE, urlsplit(str(movie.url)).path, {}, "http://replica")
        assert isinstance(answer, Answer)
        assert len(answer.body) >= SMALLEST_PAGE, "a smaller page is taken for a refusal"
        page = read_page(answer.body, movie.url)
        assert page.movie is not None
        assert replace(page.movie, unknown_fields=[]) == movie
        found = collection.find(SITE, str(movie.site_id))
        assert found is not None
        title, _ = found
        listed = title.listed.get(SITE, []) if movie.kind == "series" else []
        assert [replace(season, unknown_fields=[]) for season in page.seasons] == listed
