"""The text of a robots.txt, in whatever form a host sends it."""

import codecs

import pytest
from protego import Protego

from moviecrawler.politeness.robots import MAX_BYTES, read_rules

RULES = "User-agent: *\nDisallow: /films/é/\n"
FORMS = {
    "utf-8": RULES.encode(),
    "utf-8 with a mark": codecs.BOM_UTF8 + RULES.encode(),
    "utf-16 of little endians": codecs.BOM_UTF16_LE + RULES.encode("utf-16-le"),
    "utf-16 of big endians": codecs.BOM_UTF16_BE + RULES.encode("utf-16-be"),
    "utf-16-le without a mark": RULES.encode("utf-16-le"),
    "utf-16-be without a mark": RULES.encode("utf-16-be"),
}


@pytest.mark.parametrize("form", FORMS)
def test_rules_are_the_same_in_every_form(form: str) -> None:
    assert read_rules(FORMS[form]) == RULES


def test_bytes_of_another_encoding_cost_no_other_rule() -> None:
    text = read_rules(b"# caf\xe9\n" + RULES.encode("latin-1"))
    assert text.splitlines()[1] == "User-agent: *"
    assert not Protego.parse(read_rules(b"# caf\xe9\n" + RULES.encode())).can_fetch(
        "https://example.org/films/%C3%A9/", "moviecrawler"
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_of_a_long_file_only_whole_lines_count(end: str) -> None:
    rules = f"User-agent: *{end}Disallow: /{end}"
    fill = "#" * (MAX_BYTES - len(rules) - len(end) - len("Allow: /"))
    whole = f"{rules}{fill}{end}Allow: /"
    assert read_rules(whole.encode()) == whole
    assert read_rules(f"{whole}nothing/else{end}".encode()) == f"{rules}{fill}{end}"
    assert read_rules(b"") == ""
