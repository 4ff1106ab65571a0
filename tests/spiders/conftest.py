from tests.stored import stores

__all__ = ["stores"]
