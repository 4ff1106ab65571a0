"""The tables in `SETTINGS.md`.

The declared settings of `options.py`, those that a job may make, and a node's options.

python -m tests.settings_table > moviecrawler/SETTINGS.md
"""

import ast
import inspect
import sys
import textwrap
from itertools import pairwise

import msgspec

from moviecrawler import options as declared
from moviecrawler.cluster.jobs import SCRAPY_JOB_SETTINGS
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.options import HostOptions, Options
from moviecrawler.sites import SITES

_HEAD = """# Settings

`python -m tests.settings_table` makes this page from `options.py` and `cluster/`.

Set a setting on the command line (`scrapy crawl imdb -s NAME=value`), by an environment variable of
the same name, or in [`settings.py`](settings.py). `SCRAPYS` in [`options.py`](options.py) says
where Scrapy's own settings differ from its defaults, and why;
[`spiders/components.py`](spiders/components.py) says it of a crawl of the sites. Of Scrapy's own
settings, only `LOG_LEVEL` is read from the environment. Set a password or a token in the
environment only, as everybody on the machine can see a command line. A wrong value, of ours or of
Scrapy's, and a name that is nearly one of ours (`DATADIR`) end a command before it begins, with a
sentence and exit code 2. A variable that another program needs (`MONGO_URI`) is left alone where
the setting that it resembles has a variable, too, which may be empty. A job of a cluster may make
[some](#settings-that-a-job-may-make).

## The ten that you will set

| setting | example | what it is |
| --- | --- | --- |
"""
_TEN = {
    "CONTACT": "you@example.org",
    "DATA_DIR": "/srv/movies",
    "DATABASE_URL": "postgresql://user:password@host/movies",
    "REDIS_URL": "redis://:password@host:6379/0",
    "S3_BUCKET": "my-bucket",
    "MONGO_URL": "mongodb://user:password@host/movies",
    "ALERT_WEBHOOK": "https://hooks.example/…",
    "IMDB_DATASETS": "ratings",
    "SITE_BUDGETS": '{"imdb": {"per_day": 300}}',
    "FRONTIER_RUN": "weekly-47",
}
"""The settings of the first table, with examples; the other tables leave them out."""


def _described(options: type[Options]) -> dict[str, str]:
    """Return the docstring of each setting of a struct, by the setting's name."""
    if options is HostOptions:
        return {host.setting: host.description for site in SITES.values() for host in site.hosts}
    docs: dict[str, str] = {}
    (body,) = [
        node
        for node in ast.parse(inspect.getsource(options)).body
        if isinstance(node, ast.ClassDef)
    ]
    for node, following in pairwise(body.body):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and isinstance(following, ast.Expr)
        ):
            docs[node.target.id] = " ".join(ast.literal_eval(following.value).split())
    names = zip(options.__struct_fields__, options.__struct_encode_fields__, strict=True)
    return {name: docs[attribute] for attribute, name in names}


def _prose(text: str) -> str:
    """Return a paragraph, wrapped."""
    lines = textwrap.wrap(
        " ".join(text.split()), 120, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join([*lines, ""])


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _declared(options: type[Options], **elsewhere: str) -> str:
    """Return the table of one struct of settings.

    `elsewhere` are defaults that it does not have itself.
    """
    described = {name: text for name, text in _described(options).items() if name not in _TEN}
    if not described:
        return ""
    heading, _, more = inspect.getdoc(options).partition("\n\n")  # type: ignore[union-attr]
    lines = [f"\n## {heading.rstrip('.')}\n\n", f"{_prose(more)}\n" if more else ""]
    lines += ["| setting | default | what it is |\n| --- | --- | --- |\n"]
    defaults = {one.encode_name: one.default for one in msgspec.structs.fields(options)} | elsewhere
    for name, text in described.items():
        default = defaults[name]
        shown = (
            ""
            if default in {"", None}
            else f"{default:g}"
            if isinstance(default, float)
            else str(default)
        )
        lines.append(_line(f"`{name}`", shown, text))
    return "".join(lines)


def table() -> str:
    """Return the Markdown of all settings: the ten, then a table a part."""
    described = {
        name: text for options in declared.SETTINGS for name, text in _described(options).items()
    }
    parts = [
        _HEAD,
        *(_line(f"`{name}`", f"`{example}`", described[name]) for name, example in _TEN.items()),
    ]
    parts += map(_declared, declared.SETTINGS)
    names = ", ".join(f"`{name}`" for name in (*declared.JOB_SETTINGS, *SCRAPY_JOB_SETTINGS))
    parts.append(f"\n## Settings that a job may make\n\n{_prose(names)}")
    parts.append(_declared(NodeOptions, redis_url="REDIS_URL", node_name="the host's name"))
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(table())
