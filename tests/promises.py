"""What the project promises its users, and the tests that are marked with each promise.

The promises are the lines of `promises.txt`, a sentence each.

python -m tests.promises    # prints each promise with its tests
"""

import ast
from collections import defaultdict

from tests.shared import PROJECT

TESTS = PROJECT / "tests"
PROMISES = [
    line
    for line in (TESTS / "promises.txt").read_text("utf-8").splitlines()
    if line and line[0] != "#"
]
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def marked_tests() -> dict[str, list[str]]:
    """Return the tests that are marked with each sentence, as in `@pytest.mark.promise("…")`."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        functions = (
            node
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, _FUNCTIONS)
        )
        for function in functions:
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise":
                    found[ast.literal_eval(mark.args[0])].append(
                        f"{path.relative_to(PROJECT)}::{function.name}"
                    )
    return found


def main() -> None:
    """Print each promise, and below it its tests."""
    tests = marked_tests()
    for promise in PROMISES:
        print(promise, *tests[promise], sep="\n    ")  # noqa: T201 - what the program is for


if __name__ == "__main__":
    main()
