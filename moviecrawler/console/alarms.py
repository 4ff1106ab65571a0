"""`scrapy alarms`: open alarms, their history, and ending one."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from moviecrawler.clock import utc_now, utc_text
from moviecrawler.console.output import Console, check_no_arguments, print_json
from moviecrawler.errors import ConfigurationError
from moviecrawler.monitors.alarm_store import open_alarm_store
from moviecrawler.texts import printable

if TYPE_CHECKING:
    import argparse

    from moviecrawler.monitors.alarm_store import AlarmStore


class Alarms(Console):
    """Shows the alarms of the Redis that REDIS_URL names, or of DATA_DIR."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Show; exit code 1 when alarms stand or can't be read, 2 when the arguments are wrong."""
        check_no_arguments(args)
        with closing(open_alarm_store(self.settings)) as store:
            self._show(store, opts)

    def _show(self, store: AlarmStore, opts: argparse.Namespace) -> None:
        if opts.accept is not None and store.accept(opts.accept, utc_now().timestamp()) is None:
            names = ", ".join(alarm.name for alarm in store.open_alarms()) or "none"
            raise ConfigurationError(f"no alarm {opts.accept!r} stands; those that do: {names}")
        alarms, events = store.open_alarms(), store.history(opts.history) if opts.history > 0 else []
        if opts.json:
            print_json({"open": alarms, "history": events})
        else:
            for alarm in alarms:
                print(f"{alarm.name}, since {utc_text(alarm.since)}: {printable(alarm.text)}\n  {alarm.todo}")
            if not alarms:
                print("no alarm stands")
            for event in events:
                print(f"{utc_text(event.at)} {event.what} {event.alarm.name}: {printable(event.alarm.text)}")
        self.exitcode = 1 if alarms else 0
