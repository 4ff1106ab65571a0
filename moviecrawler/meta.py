"""Names in a request's `meta` that several parts read."""

from __future__ import annotations

DIRECT = "direct"
"""The pool that is always there: this machine's own address, without a proxy."""
PROXY_META = "proxy_name"
"""The name of the proxy that a request was last sent through. Only requests of sites that rotate have one."""
POOL_META = "pool"
"""The name of that proxy's pool. Without one, a request went out directly."""
