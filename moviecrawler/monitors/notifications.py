"""Messages about alarms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from typing import TYPE_CHECKING, Literal

from moviecrawler.clock import utc_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.monitors.alarm_store import Alarm

_MOST_CHARACTERS = 1900
"""Of a message to chat programs. Discord refuses more than 2,000, Telegram more than 4,096."""
_WORDS = {"opened": "Alarm", "reminder": "Alarm still stands", "recovered": "Recovered, and no longer true"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message about an alarm."""

    status: Literal["opened", "reminder", "recovered"]
    alarm: Alarm
    at: datetime
    node: str

    @property
    def text(self) -> str:
        """One sentence."""
        said = f"{_WORDS[self.status]}: {self.alarm.name}: {self.alarm.text}"
        return said if self.status == "opened" else f"{said} (since {utc_text(self.alarm.since)})"

    @property
    def message(self) -> str:
        """The sentence, what to do first, and where to look."""
        if self.status == "recovered":
            return self.text
        return f"{self.text}. {self.alarm.todo} Dashboard: {self.alarm.page}. Runbook: scrapyd/README.md"

    def as_json(self) -> dict[str, str]:
        """Return the JSON for a webhook. Chat programs show `text`."""
        return {
            "text": self.message,
            "status": self.status,
            "alarm": self.alarm.name,
            "kind": self.alarm.kind,
            "site": self.alarm.site,
            "since": datetime.fromtimestamp(self.alarm.since, UTC).isoformat(timespec="seconds"),
            "at": self.at.isoformat(timespec="seconds"),
            "node": self.node,
        }

    def as_mail(self, sender: str, to: list[str]) -> EmailMessage:
        """Return it as a mail."""
        mail = EmailMessage()
        mail["Subject"] = f"moviecrawler: {_WORDS[self.status]}: {self.alarm.name}"
        mail["From"] = sender
        mail["To"] = ", ".join(to)
        mail["Date"] = format_datetime(self.at)
        mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2])
        mail.set_content(
            f"{self.message}\n\nStands since {utc_text(self.alarm.since)}; sent by {self.node} at {utc_text(self.at)}.\n"
        )
        return mail


def chat_message(notifications: Sequence[Notification]) -> str:
    """Return one message about all, no longer than chat programs take: what to do first once for all alarms alike."""
    lines: list[str] = []
    steps: set[str] = set()
    room = _MOST_CHARACTERS
    for number, one in enumerate(notifications):
        line = one.text if one.alarm.todo in steps else one.message
        if lines and len(line) > room:
            lines.append(f"{len(notifications) - number} more: see `scrapy alarms`")
            break
        lines.append(line[:room])
        room -= len(line) + 1
        if one.status != "recovered":
            steps.add(one.alarm.todo)
    return "\n".join(lines)
