"""Keys in the `meta` of a request that say how it is asked, and how it came to be."""

DIRECT = "direct"
"""The name of the pool that is always there: this machine's own address."""
PROXY_META = "proxy_name"
"""The proxy that the request was last sent through, on sites with proxies."""
POOL_META = "pool"
"""The name of that proxy's pool. Without it, the request is sent directly."""
ROBOTS_OF = "robots_of"
"""Of a request for a robots.txt: the site whose gate asks for it."""
PROBE_META = "probe"
"""Whether the request, or the one that was redirected to it, finds out whether a site that had
refused us answers again."""
CLOSED_META = "closed"
"""Of a request that was not sent, or got the site's refusal: the Closed that says so."""
DAMAGED = "damaged"
"""The flag of a response that can't be decompressed, on sites with proxies, as it may be the
proxy's fault."""
