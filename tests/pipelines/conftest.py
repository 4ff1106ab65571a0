from tests.stored import every_store, stored

__all__ = ["every_store", "stored"]
