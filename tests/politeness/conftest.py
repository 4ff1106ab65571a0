"""Time passes at once in tests of this folder that are coroutines."""

from tests.chain import VirtualLoop


def pytest_asyncio_loop_factories() -> dict[str, type[VirtualLoop]]:
    return {"virtual": VirtualLoop}
