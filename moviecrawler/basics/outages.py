"""Whether a service is unavailable."""


class Outage:
    """Whether a service is unavailable now, so that an outage is logged once."""

    def __init__(self) -> None:
        self._is_down = False

    def mark_down(self) -> bool:
        """Note that the service is unavailable; return whether that is new."""
        was_down = self._is_down
        self._is_down = True
        return not was_down

    def mark_up(self) -> None:
        """Note that the service answers."""
        self._is_down = False
