"""The table of fixtures at the end of `README.md`.

python -m tests.fixtures        writes it anew
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.shared import PROJECT

TESTS = PROJECT / "tests"
README = TESTS / "README.md"
_HEAD = """## Fixtures

`python -m tests.fixtures` writes this table. Each name has one meaning.

| fixture | scope | where | what it gives |
| --- | --- | --- | --- |
"""


@dataclass(frozen=True, kw_only=True, order=True)
class Fixture:
    """A fixture that tests name."""

    name: str
    scope: str
    where: str
    meaning: str

    @property
    def row(self) -> str:
        """Its row of the table."""
        file = f"[`{self.where}`]({self.where})"
        return f"| `{self.name}` | {self.scope} | {file} | {self.meaning} |\n"


def fixtures() -> Iterator[Fixture]:
    """Yield each fixture; one whose name begins with `_` is used by its own file only."""
    for path in TESTS.rglob("*.py"):
        text = path.read_text("utf-8")
        if "pytest.fixture" not in text:
            continue
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            told = [ast.unparse(decorator) for decorator in node.decorator_list]
            if node.name.startswith("_") or not any("pytest.fixture" in each for each in told):
                continue
            scopes = [scope for scope in ("module", "session") if f"scope='{scope}'" in told[0]]
            first_line = (ast.get_docstring(node) or "").partition("\n")[0]
            yield Fixture(
                name=node.name,
                scope=scopes[0] if scopes else "function",
                where=path.relative_to(TESTS).as_posix(),
                meaning=first_line.removeprefix("Return ").removeprefix("Yield "),
            )


def document() -> str:
    """Return the README with the table as it is now."""
    text = README.read_text("utf-8").partition(_HEAD)[0]
    return text + _HEAD + "".join(fixture.row for fixture in sorted(fixtures()))


if __name__ == "__main__":
    README.write_text(document(), "utf-8")
