"""The fourth site is installed for `test_installed.py`, and not for `test_not_installed.py`.

The latter installs it in a folder of its own, and runs the former where Python finds it.
"""

from moviecrawler.sites import SITES

collect_ignore = ["test_not_installed.py" if "filmograph" in SITES else "test_installed.py"]
