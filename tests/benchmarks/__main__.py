"""Runs all benchmarks, and prints their figures beside their goals.

usage: python -m tests.benchmarks [--instructions]

Each program runs at a size that takes minutes. Exits with 1 when a goal is missed or a program
fails.
"""

import subprocess
import sys

from tests.benchmarks.harness import COUNTS_INSTRUCTIONS, FIGURE, INSTRUCTIONS, MISSED
from tests.shared import PROJECT

PROGRAMS: dict[str, tuple[str, ...]] = {
    "start_speed": ("5",),
    "extraction_speed": (),
    "frontier_speed": ("2000", "3", "100000"),
    "stores_speed": ("200", "3"),
    "postgres_speed": (),
    "bulk_speed": (),
    "catalogue_speed": ("100000",),
    "catalogue_days": (),
    "dashboard_speed": (),
    "matching_accuracy": (),
}
COUNTED = ("start_speed", "frontier_speed", "stores_speed")
"""Where the time of a processor is noisier than its goal."""


def main() -> None:
    is_good = True
    for program, arguments in PROGRAMS.items():
        if COUNTS_INSTRUCTIONS and program not in COUNTED:
            continue
        command = [sys.executable, "-m", f"tests.benchmarks.{program}", *arguments]
        if COUNTS_INSTRUCTIONS:
            command.append(INSTRUCTIONS)
        ran = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True, check=False)
        figures = [line for line in ran.stdout.splitlines() if line.startswith(FIGURE)]
        print(program)
        print("\n".join(figures) or f"{FIGURE}no figures: exit code {ran.returncode}", flush=True)
        is_good &= ran.returncode == 0 and not any(line.endswith(MISSED) for line in figures)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
