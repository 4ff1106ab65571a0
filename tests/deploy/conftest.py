from __future__ import annotations

from tests.deploy.checkout import checkout, project_egg

__all__ = ["checkout", "project_egg"]
