"""Lists and cards of methods, protocols and tracks."""

import inspect
import textwrap
import warnings
from typing import Any

from benchmark.cli.output import echo, echo_json
from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track
from benchmark.config.protocols import Protocol
from benchmark.config.tracks import Track
from benchmark.errors import BenchError, PassedOverWarning


def protocols() -> list[Protocol]:
    """Every protocol."""
    return [load_protocol(name) for name in registry.protocol_files()]


def tracks() -> list[Track]:
    """Every track; one of another package that cannot be read is told and left out."""
    found = []
    for name in registry.track_files():
        try:
            found.append(load_track(name))
        except BenchError as error:
            if not registry.is_added_track(name):
                raise
            warnings.warn(PassedOverWarning(f"passed over track {name}: {error}"), stacklevel=2)
    return found


def summary(track: Track) -> str:
    """A track in a few words."""
    return f"{track.title}. {track.note}"


def print_list(kind: str, *, as_json: bool) -> None:
    """Methods, protocols or tracks, one line each."""
    rows: list[dict[str, Any]]
    if kind == "methods":
        files = registry.method_files().values()
        rows = [
            {
                "id": f.id, "summary": f.summary, "variants": list(f.variants),
                "fidelity": f.fidelity() or None,
            }
            for f in files
        ]  # fmt: skip
    elif kind == "protocols":
        rows = [{"id": p.id, "summary": p.question} for p in protocols()]
    else:
        rows = [
            {"id": t.id, "summary": summary(t), "needs_data_root": t.needs_root} for t in tracks()
        ]
    if as_json:
        echo_json(rows)
        return
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        variants = f"  [variants: {', '.join(row['variants'])}]" if row.get("variants") else ""
        fidelity = f"  ({row['fidelity']})" if row.get("fidelity") else ""
        echo(f"{row['id']:<{width}}  {row['summary']}{variants}{fidelity}")


def print_card(name: str, *, as_json: bool) -> None:
    """The card of a method, protocol or track."""
    card = _card(name)
    if as_json:
        echo_json(card)
        return
    for key, value in card.items():
        _print_field(key, value)


def _card(name: str) -> dict[str, Any]:
    if name.partition(":")[0] in registry.method_files():
        from benchmark.report.card import method_card  # reads records, which takes numpy

        return method_card(name)
    if name in registry.protocol_files():
        return load_protocol(name).model_dump()
    if name in registry.track_files():
        return _track_card(load_track(name))
    known = [*registry.method_files(), *registry.protocol_files(), *registry.track_files()]
    raise registry.not_known("name", name, known)


def _track_card(track: Track) -> dict[str, Any]:
    """A track, what its dataset reads, and the options that ``data`` may have."""
    from benchmark.report.card import option_notes

    dataset = registry.check_options(track.dataset, track.data, f"{track.id}.yaml: data")
    about = inspect.cleandoc(inspect.getmodule(type(dataset)).__doc__ or "")
    return track.model_dump() | {"about_the_data": about, "data_options": option_notes(dataset)}


def _print_field(key: str, value: Any, indent: str = "") -> None:
    label = f"{indent}{key.replace('_', ' ')}:"
    if isinstance(value, list | tuple) and any(isinstance(each, dict) for each in value):
        # A protocol's generations and settings, which stand by their names as a track's models do.
        value = {each["name"]: {k: v for k, v in each.items() if k != "name"} for each in value}
    if isinstance(value, dict) and value:
        echo(label)
        for k, v in value.items():
            _print_field(str(k), v, indent + "  ")
        return
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value)) or "none"
    first, *others = textwrap.wrap(str(value), 88) or [""]
    echo(f"{label:<14} {first}")
    for line in others:
        echo(f"{'':<14} {line}")
