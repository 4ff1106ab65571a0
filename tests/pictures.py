"""Takes the pictures of the data: `python -m tests.pictures` writes them anew.

They are the scoreboard of the demo in Datasette, and in a terminal, by Debian's chromium.
"""

import html
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.services.browser import Browser, opened_browser
from tests.shared import PROJECT
from tests.waiting import wait_for

FOLDER = PROJECT / "moviecrawler" / "examples"
WIDTH = 1_400
_ASKED = ("scoreboard", "--where", "year < 2020 AND scores_known > 3", "--limit", "12")
_TERMINAL = """<meta charset="utf-8"><style>
body {{margin: 0; background: #16181d}}
pre {{margin: 0; padding: 18px; color: #d8dee9; font: 15px/1.35 'DejaVu Sans Mono', monospace}}
b {{color: #8fbcbb; font-weight: normal}}
</style><pre><b>$ moviecrawler {command}</b>
{text}</pre>"""


@contextmanager
def datasette(folder: Path) -> Iterator[str]:
    """Give the URL of Datasette, which shows a DATA_DIR as README says."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    files = [str(folder / "movies.sqlite3"), "-m", str(folder / "metadata.json")]
    command = [sys.executable, "-m", "datasette", *files, "--port", str(port)]
    nothing = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=nothing, stderr=nothing) as process:
        try:
            wait_for(lambda: _answers(url))
            yield url
        finally:
            process.terminate()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.URLError:
        return False


def show(browser: Browser, url: str, width: int, height: int) -> None:
    """Have the browser show a page in a window."""
    browser.resize(width, height)
    browser.driver.get(url)


def show_terminal(browser: Browser, folder: Path) -> None:
    """Have the browser show what the command prints in a terminal."""
    program = str(Path(sys.executable).with_name("moviecrawler"))
    environment = {**os.environ, "DATA_DIR": str(folder), "COLUMNS": "96"}
    ran = subprocess.run(
        [program, *_ASKED], env=environment, capture_output=True, text=True, check=True
    )
    command = " ".join(f"'{part}'" if " " in part else part for part in _ASKED)
    page = folder / "terminal.html"
    text = {"command": html.escape(command), "text": html.escape(ran.stdout)}
    page.write_text(_TERMINAL.format(**text), "utf-8")
    show(browser, page.as_uri(), 900, 56 + 20 * ran.stdout.count("\n"))


def main() -> None:
    """Take both pictures."""
    with TemporaryDirectory() as folder, opened_browser() as browser:
        program = str(Path(sys.executable).with_name("moviecrawler"))
        subprocess.run([program, "demo"], cwd=folder, check=True, capture_output=True)
        data = Path(folder) / "data" / "demo"
        with datasette(data) as url:
            show(browser, f"{url}/movies/scoreboard", WIDTH, 760)
            browser.driver.save_screenshot(str(FOLDER / "datasette.png"))
        show_terminal(browser, data)
        browser.driver.save_screenshot(str(FOLDER / "table.png"))


if __name__ == "__main__":
    main()
