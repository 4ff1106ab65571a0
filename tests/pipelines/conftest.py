from tests.stored import database, every_store, stored

__all__ = ["database", "every_store", "stored"]
