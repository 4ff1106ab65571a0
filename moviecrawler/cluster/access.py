"""Access control: user names and passwords, and checks of the headers Host and Origin."""

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
"""Paths that need no password: their answers say only whether the node is healthy."""
_DEPLOYING = (b"addversion.json", b"delversion.json", b"delproject.json")


class Access:
    """Decides which requests a node answers."""

    def __init__(self, options: NodeOptions) -> None:
        self._username = options.username.encode()
        self._password = options.password.encode()
        self._deploy_password = options.deploy_password.encode() or self._password
        self._names = {"localhost", options.node_name.lower(), urlsplit(options.node_url).hostname}

    def refusal(self, request: Request, service: bytes) -> tuple[int, str] | None:
        """Return status and reason when a request is refused, else None. `service` is the first segment of its path."""
        if service in PROBES:
            return None
        if self._password:
            # All are compared, so that the time does not tell what is wrong.
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
        """Return whether the node answers requests for a host.

        Without this check the owner of any domain name could point it at this machine, and reach the node through a visitor's
        browser (DNS rebinding).
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            return name in self._names or bool(ip_address(name))
        except ValueError:
            return False


def _is_cross_site(request: Request) -> bool:
    """Return whether a page of another site made a browser send this. The browser would add our password by itself."""
    origin = request.getHeader("Origin")
    if origin is None:
        return request.getHeader("Sec-Fetch-Site") == "cross-site"
    ours = {request.getHeader("Host"), request.getHeader("X-Forwarded-Host")}
    return origin.partition("://")[2] not in ours - {None, ""}
