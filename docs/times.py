"""Write ``results/times.csv``, the times of runs by committed records: ``python docs/times.py``."""

import csv
import sys
from pathlib import Path

from benchmark.records.files import read_records
from benchmark.report.run_times import FILE, HEADS, measure

RESULTS = Path(__file__).parents[1] / "results"


def lines(folder: Path = RESULTS) -> list[list[str]]:
    """Lines of the file, the heads first."""
    rows = measure(read_records(folder / "measured"))
    return [list(HEADS), *([*map(str, row)] for row in rows)]


def main() -> None:
    """Write the file."""
    with (RESULTS / FILE).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines())
    sys.stdout.write(f"results/{FILE}\n")


if __name__ == "__main__":
    main()
