"""Scores that are on the scale of their kind."""

from moviecrawler.extract import linked_data
from moviecrawler.extract.dig import get_text
from moviecrawler.extract.findings import attempt
from moviecrawler.items import Score, ScoreKind
from moviecrawler.sites import SCORES

_PERCENT = 100


def check_average(kind: ScoreKind, average: float) -> float:
    """Return an average rating. Raises ValueError when it is not on the score's scale."""
    highest = SCORES[kind].average_scale
    if highest is None or not 0 <= average <= highest:
        raise ValueError(
            f"an average of {average:g} behind {kind}, which is not between 0 and {highest}"
        )
    return average


def new_score(kind: ScoreKind, value: float, count: int | None = None) -> Score:
    """Return a score, with its count where that is above 0.

    Raises ValueError when the value is not on its scale; one of 100 has whole numbers.
    """
    form = SCORES[kind]
    is_whole = value == int(value) or form.scale < _PERCENT
    if not form.lowest <= value <= form.scale or not is_whole:
        raise ValueError(
            f"{kind} of {value:g}, which is not between {form.lowest} and {form.scale}"
        )
    return Score(kind=kind, value=value, count=count if count is not None and count > 0 else None)


def linked_score(kind: ScoreKind, value: object, *, of_users: bool = False) -> Score | None:
    """Return the score that JSON-LD states; None for one of another scale.

    One site has the users' score of some titles under the same key: `of_users` is whether that is
    looked for.
    """
    rating = linked_data.first_of(value)
    is_users = "user" in (get_text(rating, "name") or "").lower()
    best = attempt(linked_data.number, rating, "bestRating")
    if is_users != of_users or best not in {None, SCORES[kind].scale}:
        return None
    share = linked_data.number(rating, "ratingValue")
    counts = [attempt(linked_data.number, rating, key) for key in ("ratingCount", "reviewCount")]
    count = next(filter(None, counts), 0.0)
    if share is None or not (share or count):
        return None
    return new_score(kind, share, int(count) if count == int(count) else None)
