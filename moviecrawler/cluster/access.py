"""Who may do what: user names, passwords, and the host and site that a request is meant for."""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from twisted.web import http

if TYPE_CHECKING:
    from twisted.web.server import Request

    from moviecrawler.cluster.options import NodeOptions

PROBES = (b"healthz", b"readyz")
"""Paths that need no password. Their answers say whether the node is healthy, and nothing else."""
_DEPLOYING = (b"addversion.json", b"delversion.json", b"delproject.json")


class Access:
    """Decides which requests a node answers."""

    def __init__(self, options: NodeOptions) -> None:
        self._username = options.username.encode()
        self._password = options.password.encode()
        self._deploy_password = options.deploy_password.encode() or self._password
        self._names = {"localhost", options.node_name.lower(), urlsplit(options.node_url).hostname}

    def refusal(self, request: Request, service: bytes) -> tuple[int, str] | None:
        """Return why a request to the first segment of its path is refused, as status and sentence; None when it is not."""
        if service in PROBES:
            return None
        if self._password:
            # It takes the same time whatever is wrong.
            is_named = compare_digest(self._username, request.getUser())
            is_user = is_named & compare_digest(self._password, request.getPassword())
            is_deployer = is_named & compare_digest(self._deploy_password, request.getPassword())
            if not is_user | is_deployer:
                return http.UNAUTHORIZED, "give a user name and a password that the node knows"
            if service in _DEPLOYING and not is_deployer:
                return http.FORBIDDEN, "this needs the password for deploying"
        elif not self._answers_to(request.getHeader("host") or ""):
            return http.FORBIDDEN, "without a password, a node answers only to its own name, its address or localhost"
        if request.method == b"POST" and _is_cross_site(request):
            return http.FORBIDDEN, "a page of another site sent this"
        return None

    def _answers_to(self, host: str) -> bool:
        """Return whether requests for a host are answered.

        The owner of another site could point a domain name at this machine, and reach the node through the browser of a visitor (DNS
        rebinding).
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._names or bool(ip_address(name))
        except ValueError:
            return False


def _is_cross_site(request: Request) -> bool:
    """Return whether a page of another site made a browser send this: a browser adds our password by itself."""
    origin = request.getHeader("Origin")
    if origin is None:
        return request.getHeader("Sec-Fetch-Site") == "cross-site"
    ours = {request.getHeader("Host"), request.getHeader("X-Forwarded-Host")}
    return origin.partition("://")[2] not in ours - {None, ""}
