"""Decodes IMDb's `__NEXT_DATA__`: most of it are translations and tracking, which are not built."""

import msgspec

from moviecrawler.extract.embedded import decode_json_as, script


class PageProps(msgspec.Struct, rename="camel"):
    """What is read of a page's script; None where it has no such key."""

    above_the_fold_data: object = None
    main_column_data: object = None
    page_data: object = None
    """A chart."""
    content_data: object = None
    """The page of full credits."""


class _Props(msgspec.Struct, rename="camel"):
    page_props: PageProps


class _NextData(msgspec.Struct):
    props: _Props


def page_props(body: bytes) -> PageProps:
    """Return what a page's script holds; all is None when the page has no such script.

    Raises ShapeError when it has no page properties, or the page ends inside it.
    """
    raw = script(body, "__NEXT_DATA__")
    return PageProps() if raw is None else decode_json_as(raw, _NextData).props.page_props
