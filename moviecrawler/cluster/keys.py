"""Every Redis key of the cluster: its type, what it holds and when it expires.

Keys without an expiry hold a bounded amount of data, which each comment states. A job's key is
`<project>/<job id>`.
"""

from __future__ import annotations

PENDING = "{cluster}:pending"
"""ZSET: when the job was queued (µs, 16 digits), followed by its key → minus its priority. At most
100,000."""
JOBS = "{cluster}:jobs"
"""HASH: key → JSON of a `JobStatus`, for each job in `PENDING`, `RUNNING` and `FINISHED`."""
RUNNING = "{cluster}:running"
"""HASH: key → id of the node that runs the job."""
FINISHED = "{cluster}:finished"
"""ZSET: key → when the job ended (ms). At most 1,000."""
NODES = "{cluster}:nodes"
"""ZSET: node's id → when its lease ends (ms, by Redis' clock)."""
NODE_INFOS = "{cluster}:node_infos"
"""HASH: node's id → JSON of a `NodeInfo`, for each node in `NODES`."""
LOST = "{cluster}:lost"
"""ZSET: node's name → when its lease ended, though it had not left (ms). It has those of a day that
are not back."""
LAST_BEAT = "{cluster}:last_beat"
"""STRING: when any node's last heartbeat came (ms)."""
COUNTERS = "{cluster}:counters"
"""HASH: `<result>/<spider>` (see `RESULTS`) → how many jobs ended so; `node_lost` → how many nodes'
heartbeats stopped before they left."""
STATE_VERSION = "{cluster}:changed"
"""STRING: an opaque token that changes with the state; metrics of memory do not change it."""
EGGS = "{cluster}:eggs"
"""HASH: `<project>/<version>` → JSON of `Egg`. At most 20 a project."""
EGG_FILES = "{cluster}:egg_files"
"""HASH: `<project>/<version>` → bytes of the egg."""

SCRIPT_KEYS = (
    PENDING,
    JOBS,
    RUNNING,
    FINISHED,
    NODES,
    NODE_INFOS,
    LAST_BEAT,
    COUNTERS,
    STATE_VERSION,
    EGGS,
    LOST,
)
"""KEYS of every script, in the order of `common.lua`."""
