"""Jobs of a node in processes that are forked, where a test is not about an interpreter's start.

A node has a child that has imported what jobs need, and asks it for each. That one forks twice, and
the process between them ends, by which the job becomes the node's own child: its end, its signals
and its id are those of a process that the node has started.
"""

import ctypes
import json
import os
import socket
import sys
import time
from typing import Any

from twisted.internet.process import Process

_SET_CHILD_SUBREAPER = 36
"""Has orphans among a process' descendants become its own children; of Linux' prctl.h."""
_MAX_REQUEST_BYTES = 128 * 1024
_DESCRIPTORS = 4
"""Of a job: its input, its output, its errors and its figures."""


def fork_jobs() -> bool:
    """Have the node that this process becomes fork its jobs.

    Returns:
        False in the node, and True in each of its jobs, which have a job's arguments, environment
        and descriptors.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    node, jobs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        node.close()
        _serve(jobs)
        return True
    jobs.close()

    def start(process: Any, *given: Any) -> bool:
        _, _, _, _, arguments, environment, descriptors = given
        request = {
            "arguments": [os.fsdecode(argument) for argument in arguments],
            "environment": {
                os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()
            },
        }
        files = [descriptors["fdmap"][number] for number in range(_DESCRIPTORS)]
        socket.send_fds(node, [json.dumps(request).encode()], files)
        process.pid = int(node.recv(_MAX_REQUEST_BYTES))
        process.status = -1
        return True

    Process._trySpawnInsteadOfFork = start  # type: ignore[method-assign]
    return False


def _serve(node: socket.socket) -> None:
    """Fork a job for each request, and return in the job."""
    # It comes from a job's egg.
    for name in [name for name in sys.modules if name.partition(".")[0] == "moviecrawler"]:
        del sys.modules[name]
    while True:
        request, files, _, _ = socket.recv_fds(node, _MAX_REQUEST_BYTES, _DESCRIPTORS)
        if not request:  # the node is gone
            os._exit(0)
        if os.fork() == 0:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            while os.getppid() == between:
                time.sleep(0.001)
            node.send(str(os.getpid()).encode())
            _become_job(files, **json.loads(request))
            return
        os.wait()
        for file in files:
            os.close(file)


def _become_job(files: list[int], arguments: list[str], environment: dict[str, str]) -> None:
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(_DESCRIPTORS, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments[2:]  # without the interpreter and its -P
