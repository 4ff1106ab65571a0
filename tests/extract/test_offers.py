from urllib.parse import quote

import pytest

from moviecrawler.extract.offers import plain_address

LAMP = "https://lamp.example/t/7"


def counted(target: str, counter: str = "https://click.justwatch.com/a?cx=eyJ&r=") -> str:
    """Return a link that is counted on its way to `target`."""
    return counter + quote(target, safe="")


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        (f"{LAMP}?v=1&utm_source=a&irclickid=x&linkCode=y&ascsubtag=z#t", f"{LAMP}?v=1"),
        (counted(LAMP), LAMP),
        (counted(LAMP, "http://click.justwatch.com/a?r="), LAMP),
        (
            counted(f"{LAMP}?v=1", "https://lamp.pay.example/c/12/345/6789?subId1=a&u="),
            f"{LAMP}?v=1",
        ),
        (counted(counted(LAMP, "https://lamp.pay.example/c/12/345/6789?u=") + "&subId3=b"), LAMP),
        (counted(counted(counted(LAMP))), LAMP),  # as many redirects as are followed
        (counted(counted(counted(counted(LAMP)))), None),
        ("https://lamp.example/c/12/345/6789", "https://lamp.example/c/12/345/6789"),
        ("https://click.justwatch.com/a?cx=eyJ", None),
        ("https://click.justwatch.com", None),
        (counted("javascript:alert(1)"), None),
        (f"{LAMP} onclick=x", None),
        (f"{LAMP}?v=1\nX-Header: 2", None),
        ("/t/7", None),
        (f"{LAMP}?v={'1' * 3000}", None),
        (None, None),
    ],
)
def test_address_is_that_of_the_provider_without_tracking(
    url: str | None, plain: str | None
) -> None:
    assert plain_address(url) == plain
