"""What the document on the data shows is what its commands print."""

from tests.data_document import DOCUMENT, document, same
from tests.forked_programs import forked_programs


def test_each_command_of_the_document_prints_what_it_shows() -> None:
    shown = DOCUMENT.read_text("utf-8")
    with forked_programs() as programs:
        printed = document(programs)
    assert same(printed) == same(shown), "python -m tests.data_document writes it anew"
