from __future__ import annotations

from tests.deploy.checkout import checkout

__all__ = ["checkout"]
