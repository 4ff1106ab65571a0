"""Tests that are coroutines: each runs in an event loop of its own.

The fixtures that take `runner` run in it, too.
"""

import asyncio
import inspect
from collections.abc import Iterator

import pytest


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Return the event loop of a test, for fixtures that have something to await.

    A test file may name another kind of loop as `EVENT_LOOP`.
    """
    with asyncio.Runner(loop_factory=getattr(request.module, "EVENT_LOOP", None)) as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters
    }
    runner: asyncio.Runner = pyfuncitem._request.getfixturevalue("runner")
    runner.run(pyfuncitem.obj(**given))
    return True
