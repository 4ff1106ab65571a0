"""Faults in the package, chosen by a seed: `python -m tests.mutations --seed 70 --count 80`.

With `--run 3`, each is put alone into a copy of the last commit, and rings of tests run until one
fails: the files of its room and those that name its module most often first. `--run 2` leaves out
the last ring. SQL and Lua have 15 % of the faults; each room has two others, or more by its size.

A number is a bound where something is compared with it or cut by it. Others, such as the size of a
block or the seconds of a time-out, may be one more and nobody is worse off.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

_CLAUSES = {
    # A condition becomes TRUE; an ORDER BY or a part of a UNION goes.
    ".sql": re.compile(
        r"""
        (?: (?P<kept> \b(?:WHERE|AND|JOIN\ \S+(?:\ AS)?\ \S+\ ON)\ )
            | \bORDER\ BY | \bUNION.*SELECT )
        (?: [^()] | \((?: [^()] | \([^()]*\) )*\) )+?
        (?= \ (?:AND|OR|ORDER|LIMIT|THEN)\b | [);] | $ )
        """,
        re.VERBOSE,
    ),
    # A statement that fits a line goes.
    ".lua": re.compile(r"(?P<kept>^ +)(?:return\b|[\w.]+\(|[\w.\[\]#+ ]+ = ).*[^({,]$"),
}
_SWAPPED = {"and": "or", "or": "and", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}


class Fault(NamedTuple):
    path: Path
    start: int
    end: int
    new: str

    def __str__(self) -> str:
        text = _read(self.path)
        line = text.count("\n", 0, self.start) + 1
        change = f"{text[self.start : self.end]} -> {self.new}"
        return f"{self.path}:{line} {' '.join(change.split())}"


def _read(path: Path) -> str:
    """Return a text whose letters are the bytes of the file, as `ast` counts these."""
    return path.read_text("latin-1")


def _clause_faults(path: Path) -> Iterator[Fault]:
    start = 0
    for line in _read(path).splitlines(keepends=True):
        for clause in _CLAUSES[path.suffix].finditer(line.partition("--")[0].rstrip()):
            new = f"{clause['kept']}TRUE" if clause["kept"] and path.suffix == ".sql" else ""
            yield Fault(path, start + clause.start(), start + clause.end(), new)
        start += len(line)


def _python_faults(path: Path) -> Iterator[Fault]:
    text = _read(path)
    starts = [0, 0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    nodes = list(ast.walk(ast.parse(text.encode("latin-1"))))
    # Python 3.11 does not know where the parts of an f-string are.
    hidden = {part for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}

    def begin(node: ast.expr | ast.stmt) -> int:
        return starts[node.lineno] + node.col_offset

    def end(node: ast.expr | ast.stmt) -> int:
        return starts[node.end_lineno or 0] + (node.end_col_offset or 0)

    def change(node: ast.expr | ast.stmt, form: str) -> Fault:
        new = form.format(text[begin(node) : end(node)])
        return Fault(path, begin(node), end(node), new)

    for node in nodes:
        match node:
            case _ if node in hidden:
                pass
            case ast.If(test=ast.Name("TYPE_CHECKING")) | ast.Return(value=ast.Constant(None)):
                pass
            case (
                ast.If(test=test)
                | ast.While(test=test)
                | ast.IfExp(test=test)
                | ast.comprehension(ifs=[test])
                | ast.Return(value=(ast.Compare() | ast.BoolOp() | ast.Constant(bool())) as test)
            ):
                yield change(test, "not ({})")
            case ast.Return(value=ast.expr() as value):
                yield change(value, "None")
            case ast.Raise():
                yield change(node, "pass")
            case ast.Await(value=value):
                yield Fault(path, begin(node), begin(value), "")
            case ast.BoolOp(values=[left, right, *_]) | ast.Compare(
                left, ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], comparators=[right]
            ):
                operator = text[end(left) : begin(right)]
                new = re.sub(r"\w+|[<>]=?", lambda old: _SWAPPED[old[0]], operator, count=1)
                yield Fault(path, end(left), begin(right), new)
        if _is_bounded(node):
            for number in ast.iter_child_nodes(node):
                if isinstance(number, ast.Constant) and type(number.value) is int:
                    yield change(number, "({} + 1)")


def _is_bounded(node: ast.AST) -> bool:
    match node:
        case ast.Compare() | ast.Slice() | ast.Call(ast.Name("range" | "min" | "max")):
            return True
        case ast.keyword(arg="ge" | "gt" | "le" | "lt" | "min_length" | "max_length" | "maxlen"):
            return True
    return False


def choose(seed: int, count: int) -> list[Fault]:
    """Return the faults that the seed chooses, clauses of SQL and Lua first."""
    rooms: dict[str, list[Fault]] = defaultdict(list)
    clauses: list[Fault] = []
    for path in sorted(Path("moviecrawler").rglob("*.*")):
        if path.suffix == ".py":
            rooms[_room(path)].extend(_python_faults(path))
        elif path.suffix in _CLAUSES:
            clauses.extend(_clause_faults(path))
    chance = random.Random(seed)  # noqa: S311 - the same faults each time
    chosen = chance.sample(clauses, count * 15 // 100)
    quotas = Counter(room for room, faults in rooms.items() for _ in faults[:2])
    while quotas.total() < count - len(chosen):
        quotas[min(quotas, key=lambda room: quotas[room] / len(rooms[room]))] += 1
    for room, quota in quotas.items():
        chosen += chance.sample(rooms[room], quota)
    return chosen


def _room(path: Path) -> str:
    """Return the name of a folder, or "" for a module beside the folders."""
    return "/".join(path.parts[1:-1][:1])


def _rings(path: Path) -> list[list[str]]:
    """Return the four nearest files of tests, the next sixteen, and all others."""
    words = re.compile(rf"\b({'|'.join(path.with_suffix('').parts[1:])})\b")

    def distance(test: Path) -> tuple[bool, int, Path]:
        return test.parts[1] != _room(path), -len(words.findall(test.read_text())), test

    tests = [str(test) for test in sorted(Path("tests").rglob("test_*.py"), key=distance)]
    return [tests[:4], tests[4:20], tests[20:]]


def copy(folder: Path) -> Path:
    """Copy the last commit and this environment; return the path of the copied project.

    A process that a test starts without PYTHONPATH imports the copy, too.
    """
    project = folder / "project"
    subprocess.run(["git", "clone", "--quiet", ".", project], check=True)
    environment = shutil.copytree(sys.prefix, folder / "environment", symlinks=True)
    for path in [*environment.glob("bin/*"), *environment.rglob("__editable__*.py")]:
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes().replace(bytes(Path.cwd()), bytes(project))
            path.write_bytes(text.replace(sys.prefix.encode(), bytes(environment)))
    return project


def notice(fault: Fault, project: Path, rings: int) -> str:
    """Run tests on a copy with the fault, and return the first that fails."""
    programs = project.parent / "environment/bin"
    text = _read(fault.path)
    changed = f"{text[: fault.start]}{fault.new}{text[fault.end :]}"
    (project / fault.path).write_text(changed, "latin-1")
    failed = ["NOTHING"]
    for tests in _rings(fault.path)[:rings]:
        run = subprocess.run(
            [programs / "pytest", "-x", "-q", "-n2", "-o", "faulthandler_timeout=200", *tests],
            cwd=project,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if run.returncode not in {0, 5}:  # 5: all of these tests are left out
            failed = re.findall("^(?:FAILED|ERROR) tests.*", run.stdout, re.MULTILINE) or [
                run.stdout[-300:]
            ]
            break
    (project / fault.path).write_text(text, "latin-1")
    return failed[0]


def main() -> None:
    """Print the faults, and what notices each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--run", type=int, default=0, help="how many rings of tests")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of faults")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = copy(Path(folder)) if arguments.run else Path()
        for number, fault in enumerate(choose(arguments.seed, arguments.count)):
            if arguments.only is None or number in arguments.only:
                noticed = notice(fault, project, arguments.run) if arguments.run else ""
                print(number, fault, noticed, sep="\t", flush=True)


if __name__ == "__main__":
    main()
