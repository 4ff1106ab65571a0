"""The logs of jobs: files of the node that ran the job, or of all nodes that share a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from scrapyd.website import File
from twisted.web import http
from twisted.web.resource import Resource

from moviecrawler.cluster.environment import log_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted.web.server import Request

    from moviecrawler.cluster.node import Node

_NAMES = 3
"""Names in the path of a log: project, spider and job."""


class Logs(File):  # type: ignore[misc]  # Scrapyd has no types
    """Scrapyd's `/logs/`, in which every file is plain text: a spider's file must not become a page of the node."""

    contentTypes: dict[str, str] = {}  # noqa: RUF012 - as Twisted has it
    contentEncodings: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, path: str, *more: Any) -> None:
        super().__init__(path, "text/plain; charset=utf-8")

    def getChild(self, path: bytes, request: Any) -> Any:
        return self.childNotFound if b"\0" in path else super().getChild(path, request)


class MissingLog(Resource):
    """A job's log that is not in this node's folder: redirects to the node that has it, or says which one that is."""

    isLeaf = True

    def __init__(self, node: Node, names: Sequence[str]) -> None:
        super().__init__()
        self._node = node
        self._project, self._spider, self._job = names

    @classmethod
    def of(cls, node: Node, path: Sequence[bytes]) -> Self | None:
        """Return what answers for a path below `/logs/`; None when the file is here, or it is no log's."""
        names = [name.decode(errors="replace") for name in path]
        if len(names) != _NAMES or not names[2].endswith(".log") or any("\0" in name or "/" in name for name in names):
            return None
        names[2] = names[2].removesuffix(".log")
        if {"", ".", ".."} & set(names) or log_path(node.options, *names).exists():
            return None
        return cls(node, names)

    def render(self, request: Request) -> bytes:
        status = self._node.snapshot.find(self._project, self._job)
        code, sentence = http.NOT_FOUND, "there is no such log"
        if status is not None and status.node not in {"", self._node.name}:
            url = next((one.node_url for one in self._node.state.nodes() if one.id == status.node_id), "")
            sentence = f"the log is on {status.node}"
            if url:
                code = http.TEMPORARY_REDIRECT
                request.setHeader("Location", f"{url}{request.path.decode('ascii', errors='replace')}")
        request.setResponseCode(code)
        request.setHeader("Content-Type", "text/plain; charset=utf-8")
        return f"{sentence}\n".encode()
