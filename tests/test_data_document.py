"""What the document on the data shows is what its commands print."""

from tests.data_document import DOCUMENT, document, same


def test_each_command_of_the_document_prints_what_it_shows() -> None:
    shown = DOCUMENT.read_text("utf-8")
    assert same(document()) == same(shown), "python -m tests.data_document writes it anew"
