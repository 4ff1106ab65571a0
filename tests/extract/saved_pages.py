"""Pages that the sites really served, from `../shared/pages`, and what is known of each. Empty where the folder is not."""

from __future__ import annotations

import functools
import importlib.util
import json
from typing import Any

from tests.shared import PAGES, is_here


@functools.cache
def compare() -> Any:
    """Return the module that holds a record against what is known."""
    spec = importlib.util.spec_from_file_location("compare", PAGES / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _known() -> dict[str, dict[str, Any]]:
    if not is_here("pages"):
        return {}
    lines = (PAGES / "TRUTH.jsonl").read_text("utf-8").splitlines()
    return {truth["file"]: truth for truth in map(json.loads, lines)}


TRUTH = _known()
"""What is known, by file."""
_INDEX = (PAGES / "INDEX.tsv").read_text("utf-8").splitlines() if TRUTH else []
URLS = {cells[0]: cells[3] for cells in (line.split("\t") for line in _INDEX)}
"""Their addresses, which are empty where they are not known."""
CORE = [file for file, truth in TRUTH.items() if truth["kind"] in compare().CORE]
"""Files of the kinds that are read into items and lists."""


def holds(truth: dict[str, Any], fact: str, got: dict[str, Any]) -> bool:
    """Return whether a record says a fact as it is known, or in another way that the page has too."""
    wanted = [truth[fact], *((truth.get("also_on_page") or {}).get(fact) or [])]
    return any(compare().same(fact, want, got, truth) for want in wanted)
