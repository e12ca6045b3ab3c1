"""Compare the numbers that two commits print: ``python tests/same_numbers.py BEFORE [AFTER]``.

Each commit is checked out and runs the same commands, with its own committed records: tables of
every board, files of the site, reports on the built-in vectors, and a short run of every protocol.
Differences are printed; exit code 1 tells that there are some. About half an hour on two cores.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
PASSING = {"date", "version", "fit_s", "rows_per_s", "hours", "money", "time", "seconds", "commit"}
"""Fields of reports that a clock or a commit decides."""
SHORT = ("recipe.epochs=1", "recipe.transform_steps=5")


def bench(tree: Path, *words: object) -> str:
    """Exit code, output and errors of a command of a checked-out commit."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmark.cli.app", *map(str, words)], cwd=tree, check=False,
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "COLUMNS": "200"},
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}"


def boards(tree: Path) -> list[tuple[str, str]]:
    """Protocol and track of every folder of committed records."""
    found = (tree / "results" / "measured").glob("*/*")
    return sorted((each.parent.name.replace("+", ":"), each.name) for each in found)


def tables(tree: Path) -> dict[str, str]:
    """Every board's table, all metrics and cases."""
    return {
        f"table {protocol} {track}": bench(
            tree, "table", "results/measured", "-p", protocol, "-t", track, "-f", "csv",
            "--metrics", "all", "--cases", "all",
        )
        for protocol, track in boards(tree)
    }  # fmt: skip


def site(tree: Path) -> dict[str, str]:
    """CSV and JSON of the leaderboard."""
    bench(tree, "leaderboard", "--out", "runs/site")
    folder = tree / "runs" / "site"
    files = (each for kind in ("*.csv", "*.json") for each in folder.rglob(kind))
    return {f"site {each.relative_to(folder)}": each.read_text() for each in files}


def reports(tree: Path) -> dict[str, str]:
    """Reports of ``bench upgrade`` on the built-in vectors."""
    found = {}
    for maps in ("quick", "all"):
        written = tree / "runs" / f"report-{maps}.json"
        written.parent.mkdir(exist_ok=True)
        said = bench(tree, "upgrade", "--demo", "--maps", maps, "--json", written)
        found[f"upgrade --maps {maps}"] = written.read_text() if written.exists() else said
    return found


def runs(tree: Path) -> dict[str, str]:
    """Scores of a short run of every protocol, or the reason why it is not possible."""
    found = {}
    for protocol in sorted(each.stem for each in (tree / "protocols").glob("*.yaml")):
        track = next((t for p, t in boards(tree) if p == protocol and t.startswith("glyphs")), "")
        out = f"runs/{protocol}"
        said = bench(
            tree, "run", "-p", protocol, "-t", track or "toy", "-m", "bct,fct", "--device", "cpu",
            *(word for setting in SHORT for word in ("--set", setting)), "--records-only",
            "--store", f"{out}/store", "--out", f"{out}/out", "--published", "none",
        )  # fmt: skip
        made = (tree / out / "out").is_dir()
        words = ("table", f"{out}/out", "-f", "csv", "--metrics", "all", "--cases", "all")
        found[f"run {protocol}"] = bench(tree, *words) if made else said
    return found


def numbers(commit: str, folder: Path) -> dict[str, str]:
    """All outputs of a commit by their name."""
    tree = folder / "tree"
    git = ["git", "-C", str(ROOT)]
    subprocess.run([*git, "worktree", "add", "--quiet", "--detach", tree, commit], check=True)
    try:
        parts = [part(tree) for part in (tables, reports, runs, site)]
        return {name: text for part in parts for name, text in part.items()}
    finally:
        subprocess.run([*git, "worktree", "remove", "--force", tree], check=True)


def same(one: object, other: object) -> bool:
    """Equality of what JSON holds, without what passes with time."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = (one.keys() | other.keys()) - PASSING
        return all(same(one.get(each), other.get(each)) for each in names)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):  # sums in another order
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def equal(one: str, other: str) -> bool:
    """Equality of two outputs; JSON is compared field by field."""
    try:
        return same(json.loads(one), json.loads(other))
    except ValueError:
        return one == other


def main(before: str, after: str = "HEAD") -> int:
    """Print each difference; 1 if there are some."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        places = [Path(folder) / name for name in ("before", "after")]
        old, new = pool.map(numbers, (before, after), places)
    changed = [name for name in sorted(old.keys() | new.keys())
               if not equal(old.get(name, ""), new.get(name, ""))]  # fmt: skip
    for name in changed:
        pairs = zip(old.get(name, "").splitlines(), new.get(name, "").splitlines(), strict=False)
        line = next((f"\n  {a[:150]}\n  {b[:150]}" for a, b in pairs if a != b), "")
        print(f"{name}: {len(old.get(name, ''))} and {len(new.get(name, ''))} letters{line}")
    print(f"{len(old.keys() | new.keys()) - len(changed)} outputs equal, {len(changed)} differ")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
