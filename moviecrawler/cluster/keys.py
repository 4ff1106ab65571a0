"""Every Redis key of the cluster: its type, what it holds and when it expires.

They share a hash tag, so that Redis Cluster keeps them on one node and a script may use them together. None expires by
itself: what they hold is bounded, as said at each. A job's key is `<project>/<job id>`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one cluster; several may share a Redis under different prefixes."""

    prefix: str

    def _of(self, name: str) -> str:
        return f"{{{self.prefix}}}:{name}"

    # --- Jobs ---------------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> str:
        """ZSET: when the job was queued (µs, 16 digits, each once) and its key → minus its priority. At most `max_pending`."""
        return self._of("pending")

    @property
    def sequence(self) -> str:
        """STRING: the number of the last job that was queued."""
        return self._of("sequence")

    @property
    def jobs(self) -> str:
        """HASH: key → JSON of the `Job`, of those pending and running."""
        return self._of("jobs")

    @property
    def places(self) -> str:
        """HASH: key → member of `pending`, of those pending and running, so that a job goes back to where it was."""
        return self._of("places")

    @property
    def running(self) -> str:
        """HASH: key → JSON with `node`, `score` (of `pending`), `at` (ms), and when it is to be cancelled, `signal` and `cancels`."""
        return self._of("running")

    @property
    def deaths(self) -> str:
        """HASH: key → how many times in a row the job's node or process died, of those pending and running."""
        return self._of("deaths")

    def hangs(self, key: str) -> str:
        """HASH of a job: URL → how many times it made the job's process hang. Expires a week after the last time.

        Of requests that are not from a shared frontier, which has its own.
        """
        return self._of(f"hangs:{key}")

    @property
    def cancelled(self) -> str:
        """ZSET: key → until when (ms) it is remembered that the job was cancelled before it ran. Ten minutes."""
        return self._of("cancelled")

    @property
    def finished(self) -> str:
        """ZSET: key → when the job ended (ms). At most `finished_to_keep`."""
        return self._of("finished")

    @property
    def results(self) -> str:
        """HASH: key → a line of JSON, the `Outcome`, and a second one, the `Job`, of those in `finished`."""
        return self._of("results")

    @property
    def starts(self) -> str:
        """HASH: key → JSON array of the last 100 starts: `node` (id), `at` (ms), `number` (from 1); of jobs that were started and are in `jobs` or `results`.

        Its log is in that order on those nodes.
        """
        return self._of("starts")

    def schedule(self, name: str) -> str:
        """HASH of a recurring job: `job`, the key of the last one; and by a digest of its times, up to which they are dealt with (s).

        Expires when no node has had the schedule for 35 days.
        """
        return self._of(f"schedule:{name}")

    # --- Nodes --------------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> str:
        """ZSET: node's id → when its lease ends (ms, by Redis' clock)."""
        return self._of("nodes")

    @property
    def node_infos(self) -> str:
        """HASH: id → JSON of `NodeInfo`, of those in `nodes`."""
        return self._of("node_infos")

    @property
    def last_beat(self) -> str:
        """STRING: when any node's last heartbeat came (ms)."""
        return self._of("last_beat")

    @property
    def counters(self) -> str:
        """HASH: `scheduled`, `started`, `finished`, `cancelled`, `gave_up`, `handed_back`, `died`, `hung`, `recycled` → how many, ever."""
        return self._of("counters")

    # --- Projects -----------------------------------------------------------------------------------------------------

    @property
    def eggs(self) -> str:
        """HASH: `<project>/<version>` → JSON of `Egg`. At most `versions_to_keep` a project."""
        return self._of("eggs")

    def egg(self, sha256: str) -> str:
        """Return the key of a STRING: an egg's bytes, unless eggs are in S3. Deleted with the last version that names it."""
        return self._of(f"egg:{sha256}")

    # --- Calls between nodes ------------------------------------------------------------------------------------------

    @property
    def events(self) -> str:
        """Channel: `wake` when there is a job to take, or `cancel` with a node's id, a job's key, a signal and its number."""
        return self._of("events")

    @property
    def of_scripts(self) -> list[str]:
        """Return what every script gets as KEYS, in the order of `common.lua`."""
        return [
            *(self.pending, self.sequence, self.jobs, self.places, self.running, self.deaths, self.cancelled),
            *(self.finished, self.results, self.nodes, self.node_infos, self.last_beat, self.counters, self.starts),
        ]
