from __future__ import annotations

from tests.pipelines.stored import stored

__all__ = ["stored"]
