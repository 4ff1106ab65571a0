"""Who may do what: user names, passwords, and the host and site that a request is meant for."""

from __future__ import annotations

from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from twisted.web import http

if TYPE_CHECKING:
    from twisted.web.server import Request

    from moviecrawler.cluster.options import NodeOptions

Role = Literal["user", "deployer"]
"""A deployer may do everything; a user too, unless there are deployers."""

PROBES = (b"healthz", b"readyz")
"""Paths that need no password. Their answers say whether the node is healthy, and nothing else."""
_DEPLOYING = (b"addversion.json", b"delversion.json", b"delproject.json")


class Access:
    """Decides which requests a node answers."""

    def __init__(self, options: NodeOptions) -> None:
        self.needs_password = bool(options.username)
        self._username = options.username.encode()
        deployer = options.deploy_password or options.password
        # If both are the same password, its user may deploy.
        self._passwords: dict[Role, bytes] = {"user": options.password.encode(), "deployer": deployer.encode()}
        self._names = {"localhost", options.node_name.lower(), urlsplit(options.node_url).hostname}

    def refusal(self, request: Request, service: bytes) -> tuple[int, str] | None:
        """Return why a request to the first segment of its path is refused, as status and sentence; None when it is not."""
        if service in PROBES:
            return None
        role = self._role(request.getUser(), request.getPassword())
        if role is None:
            return http.UNAUTHORIZED, "give a user name and a password that the node knows"
        if not self.needs_password and not self._answers_to(request.getHeader("host") or ""):
            return http.FORBIDDEN, "without a password, a node answers only to its own name, its address or localhost"
        if service in _DEPLOYING and role != "deployer":
            return http.FORBIDDEN, "this needs the password for deploying"
        if request.method == b"POST" and _is_cross_site(request):
            return http.FORBIDDEN, "a page of another site sent this"
        return None

    def _role(self, username: bytes, password: bytes) -> Role | None:
        """Return the role of a user; None when the name or the password is wrong. It takes the same time whichever is."""
        if not self.needs_password:
            return "deployer"
        found: Role | None = None
        same_name = compare_digest(self._username, username)
        for role, secret in self._passwords.items():
            if same_name & compare_digest(secret, password):
                found = role
        return found

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
