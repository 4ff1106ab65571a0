"""Every Redis key of the cluster: its type, what it holds and when it expires.

Keys without an expiry hold a bounded amount of data, as said at each. A job's key is `<project>/<job id>`.
"""

from __future__ import annotations


class Keys:
    """The keys of one cluster; several may share a Redis under different prefixes."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.pending = self._of("pending")
        """ZSET: when the job was queued (µs, 16 digits) and its key → minus its priority. At most 100,000."""
        self.places = self._of("places")
        """HASH: key → member of `pending`, of jobs that are pending or running: a job goes back to where it was."""
        self.jobs = self._of("jobs")
        """HASH: key → JSON of the `Job`, of jobs that are pending, running or among `finished`."""
        self.running = self._of("running")
        """HASH: key → JSON with `node`, `score` (of `pending`), `at` (ms), and for a job to cancel `signal` and `cancels`."""
        self.starts = self._of("starts")
        """HASH: key → how many times the job was started, of those in `jobs`."""
        self.deaths = self._of("deaths")
        """HASH: key → how many times in a row the job's node or process died, of jobs that are pending or running."""
        self.finished = self._of("finished")
        """ZSET: key → when the job ended (ms). At most 1,000."""
        self.outcomes = self._of("outcomes")
        """HASH: key → JSON of the `Outcome`, of those in `finished`."""
        self.nodes = self._of("nodes")
        """ZSET: node's id → when its lease ends (ms, by Redis' clock)."""
        self.node_infos = self._of("node_infos")
        """HASH: id → JSON of `NodeInfo`, of those in `nodes`."""
        self.last_beat = self._of("last_beat")
        """STRING: when any node's last heartbeat came (ms)."""
        self.counters = self._of("counters")
        """HASH: event (see `EVENTS`) → how many, ever."""
        self.changed = self._of("changed")
        """STRING: when anything but memory has changed here last; another text after each change."""
        self.eggs = self._of("eggs")
        """HASH: `<project>/<version>` → JSON of `Egg`. At most 20 a project."""

    def _of(self, name: str) -> str:
        return f"{{{self._prefix}}}:{name}"

    def egg(self, version: str) -> str:
        """Return the key of a STRING: the bytes of a version's egg. `version` is `<project>/<version>`. Deleted with the version."""
        return self._of(f"egg:{version}")

    @property
    def of_scripts(self) -> list[str]:
        """What every script gets as KEYS, in the order of `common.lua`."""
        return [
            *(
                self.pending,
                self.places,
                self.jobs,
                self.running,
                self.starts,
                self.deaths,
                self.finished,
                self.outcomes,
            ),
            *(self.nodes, self.node_infos, self.last_beat, self.counters, self.changed),
        ]
