"""Print the size of the house: lines and modules by package, and of the committed results."""

import subprocess
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]


def tracked(*folders: str) -> list[Path]:
    """Committed files of folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def main() -> None:
    """Print the counts."""
    lines, modules = defaultdict(int), defaultdict(int)
    for file in tracked("benchmark", "methods", "protocols", "leaderboard", "tests"):
        if file.suffix == ".py":
            parts = file.relative_to(ROOT).parts
            inner = parts[0] in ("benchmark", "tests") and len(parts) > 2
            for part in {parts[0], "/".join(parts[: 1 + inner])}:
                lines[part] += file.read_bytes().count(b"\n")
                modules[part] += 1
    for part in sorted(lines):
        print(f"{part:24}{lines[part]:8,} lines {modules[part]:5} modules")
    code = sum(lines[part] for part in ("benchmark", "methods", "leaderboard"))
    print(f"benchmark, methods and leaderboard: {code:,} lines")
    files = tracked("results")
    megabytes = sum(file.stat().st_size for file in files) / 1e6
    print(f"results: {megabytes:.1f} MB in {len(files):,} files")


if __name__ == "__main__":
    main()
