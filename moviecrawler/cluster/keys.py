"""Every Redis key of the cluster: its type, what it holds and when it expires.

Keys without an expiry hold a bounded amount of data, as said at each. A job's key is `<project>/<job id>`.
"""

from __future__ import annotations


class Keys:
    """The keys of one cluster; several may share a Redis under different prefixes."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        of = self._of
        self.pending = of("pending")
        """ZSET: when the job was queued (µs, 16 digits, each once) and its key → minus its priority. At most `max_pending`."""
        self.sequence = of("sequence")
        """STRING: the number of the last job that was queued."""
        self.jobs = of("jobs")
        """HASH: key → JSON of the `Job`, of those pending and running."""
        self.places = of("places")
        """HASH: key → member of `pending`, of those pending and running, so that a job goes back to where it was."""
        self.running = of("running")
        """HASH: key → JSON with `node`, `score` (of `pending`), `at` (ms), and for a job that is to be cancelled `signal` and `cancels`."""
        self.deaths = of("deaths")
        """HASH: key → how many times in a row the job's node or process died, of those pending and running."""
        self.cancelled = of("cancelled")
        """ZSET: key → until when (ms) it is remembered that the job was cancelled before it ran. Ten minutes."""
        self.finished = of("finished")
        """ZSET: key → when the job ended (ms). At most `finished_to_keep`."""
        self.results = of("results")
        """HASH: key → a line of JSON, the `Outcome`, and a second one, the `Job`, of those in `finished`."""
        self.starts = of("starts")
        """HASH: key → JSON array of the last 100 starts: `node` (id), `at` (ms), `number` (from 1); of jobs that were started and are in `jobs` or `results`.
        Its log is in that order on those nodes."""
        self.nodes = of("nodes")
        """ZSET: node's id → when its lease ends (ms, by Redis' clock)."""
        self.node_infos = of("node_infos")
        """HASH: id → JSON of `NodeInfo`, of those in `nodes`."""
        self.last_beat = of("last_beat")
        """STRING: when any node's last heartbeat came (ms)."""
        self.counters = of("counters")
        """HASH: `scheduled`, `started`, `finished`, `cancelled`, `gave_up`, `handed_back`, `died`, `recycled`, `node_lost` → how many, ever."""
        self.eggs = of("eggs")
        """HASH: `<project>/<version>` → JSON of `Egg`. At most `versions_to_keep` a project."""
        self.counts = of("dashboard:counts")
        """STRING: JSON of the `Counts` of the catalogue. Expires a day after the last count."""
        self.counting = of("dashboard:counting")
        """STRING: the node that has counted last. Expires when the catalogue is to be counted again."""
        self.events = of("events")
        """Channel: `wake` when there is a job to take; `cancel`, a node's id, a job's key, a signal and its number, a line each, when that
        node's next heartbeat is answered with the cancellation. What follows the node's id is for nodes of earlier versions."""

    def _of(self, name: str) -> str:
        return f"{{{self._prefix}}}:{name}"

    def egg(self, sha256: str) -> str:
        """Return the key of a STRING: an egg's bytes. Deleted with the last version that names it."""
        return self._of(f"egg:{sha256}")

    @property
    def of_scripts(self) -> list[str]:
        """What every script gets as KEYS, in the order of `common.lua`."""
        return [
            *(self.pending, self.sequence, self.jobs, self.places, self.running, self.deaths, self.cancelled),
            *(self.finished, self.results, self.nodes, self.node_infos, self.last_beat, self.counters, self.starts),
        ]
