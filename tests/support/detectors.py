"""Detectors of faults in what a case did; each has a positive control in the tests."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.isolated import MEMORY, SECONDS, Outcome, Scratch

CODES = (0, 2)
"""Exit codes that the command documents: well, and bad input."""
TOKEN = "pwn7531"
"""Mark that everything planted has in it, and nothing else."""

_TRACEBACKS = (b"Traceback (most recent call last)", b"Exception ignored in", b"\nFatal Python")
_ADDRESSES = ("href", "src", "action", "formaction", "data", "poster", "background", "xlink:href")
_SCHEMES = re.compile(r"^[\s\x00-\x20]*(javascript|vbscript|data)\s*:", re.IGNORECASE)


@dataclass(frozen=True)
class Finding:
    """Something that must not happen."""

    kind: str  # traceback, crash, slow, large, ran, outside, escaped, leaked, torn, lost
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


def findings(
    outcome: Outcome,
    scratch: Scratch,
    before: Mapping[str, tuple[int, ...]],
    codes: Sequence[int] = CODES,
    seconds: float | None = None,
) -> list[Finding]:
    """All that is wrong with an outcome.

    Args:
        outcome: Of a case.
        scratch: Where it ran.
        before: The scratch folder's state before.
        codes: Exit codes that are expected.
        seconds: That it may take; by default :data:`support.isolated.SECONDS`.
    """
    found = [
        *process(outcome, codes, SECONDS if seconds is None else seconds),
        *terminal(outcome),
        *outside(scratch, before),
    ]
    found += [
        Finding("ran" if event.startswith("run") else "outside", event)
        for event in dict.fromkeys(outcome.events)
    ]
    if scratch.marker.exists():
        found.append(Finding("ran", f"imported {scratch.marker.read_text()}"))
        scratch.marker.unlink()
    for path in sorted(scratch.out.rglob("*")):
        if path.suffix in (".html", ".svg") and path.is_file():
            found += [Finding("leaked", f"{path.name}: {leak}") for leak in leaks(path)]
    return found


def process(outcome: Outcome, codes: Sequence[int], seconds: float) -> Iterator[Finding]:
    """A traceback, another end than by an exit code that is known, time, memory."""
    for mark in _TRACEBACKS:
        if mark in outcome.err or mark in outcome.out:
            last = outcome.errors.strip().splitlines()[-1:] or [""]
            yield Finding("traceback", last[0][:300])
            break
    if outcome.timed_out or outcome.seconds > seconds:
        yield Finding("slow", f"{outcome.seconds:.1f} s, {outcome.cpu_seconds:.1f} s of them busy")
    elif outcome.code not in codes:
        end = f"exit code {outcome.code}" if outcome.signal is None else f"signal {outcome.signal}"
        yield Finding("crash", f"{end}: {outcome.errors[-300:].strip()}")
    if outcome.memory_bytes > MEMORY:
        yield Finding("large", f"{outcome.memory_bytes / 2**20:.0f} MiB")
    if outcome.code == 2 and not outcome.errors.strip():
        yield Finding("crash", "exit code 2 without a word")


def terminal(outcome: Outcome) -> Iterator[Finding]:
    """Characters that a terminal would carry out, or that no encoding has."""
    for name, content in (("stdout", outcome.out), ("stderr", outcome.err)):
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            yield Finding("escaped", f"{name}: not UTF-8: {error}")
            continue
        bad = sorted({c for c in text if not c.isprintable() and c not in "\n\t"})
        if bad:
            yield Finding("escaped", f"{name}: {', '.join(f'U+{ord(c):04X}' for c in bad[:8])}")


def outside(scratch: Scratch, before: Mapping[str, tuple[int, ...]]) -> Iterator[Finding]:
    """Changes where none may be."""
    after = scratch.state()
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            verb = "new" if name not in before else "gone" if name not in after else "changed"
            yield Finding("outside", f"{verb}: {Path(name).relative_to(scratch.root)}")


def leaks(page: Path) -> Iterator[str]:
    """Places where something planted is markup or code of a page, as a browser would read it."""
    raw = page.read_bytes()
    if TOKEN.encode() not in raw:
        return
    import html5lib

    tree = html5lib.parse(io.BytesIO(raw), namespaceHTMLElements=False, transport_encoding="utf-8")
    for element in tree.iter():
        if not isinstance(element.tag, str):  # a comment: text
            continue
        name = element.tag.rpartition("}")[2]
        text = "".join(element.itertext()) if name in ("script", "style") else ""
        kind = element.get("type", "")
        if TOKEN in name.lower():
            yield f"element <{name[:60]}>"
        if TOKEN in text and not (name == "script" and kind.startswith("application/json")):
            yield f"code of <{name}>"
        for key, value in element.attrib.items():
            attribute = (key if isinstance(key, str) else str(key)).rpartition("}")[2].lower()
            if TOKEN in attribute or (TOKEN in value and attribute.startswith("on")):
                yield f"attribute {attribute[:60]} of <{name}>"
            elif TOKEN in value and (
                attribute in ("srcdoc", "style")
                or (attribute in _ADDRESSES and _SCHEMES.match(value))
            ):
                yield f"address in {attribute} of <{name}>"
        if name == "img" and element.get("src", "") == f"x{TOKEN}":
            yield "a planted image"
