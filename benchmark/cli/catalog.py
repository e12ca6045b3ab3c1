"""Lists and cards of methods, protocols and tracks."""

import inspect
import warnings
from pathlib import Path
from typing import Any

from benchmark.cli import cards
from benchmark.cli.output import echo, echo_entry, echo_json
from benchmark.config import registry
from benchmark.config.loading import load_protocol, load_track
from benchmark.config.protocols import Protocol
from benchmark.config.reading import read_yaml
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
        rows = [{"id": p.id, "summary": p.question, **_minutes(protocol=p.id)} for p in protocols()]
    else:
        rows = [
            {
                "id": t.id, "summary": summary(t), "needs_data_root": t.needs_root,
                **_minutes(track=t.id),
            }
            for t in tracks()
        ]  # fmt: skip
    if as_json:
        echo_json(rows)
        return
    width = max(len(row["id"]) for row in rows)
    timed = any(row.get("minutes") for row in rows)  # not where no file says
    for row in rows:
        variants = f"  [variants: {', '.join(row['variants'])}]" if row.get("variants") else ""
        fidelity = f"  ({row['fidelity']})" if row.get("fidelity") else ""
        known = "-" if row.get("minutes") is None else f"{row['minutes']:.1f} min"
        minutes = f"{known:<9}  " if timed else ""
        echo_entry(f"{row['id']:<{width}}  {minutes}", f"{row['summary']}{variants}{fidelity}")
    if timed:
        echo(_OF_MINUTES[kind])


_OF_MINUTES = {
    kind: f"Minutes: a first run (bct, independent, one seed) {where}, on one core, by committed "
    "records; -: none."
    for kind, where in (
        ("tracks", "under the quickest protocol"), ("protocols", "on the quickest track")
    )
}  # fmt: skip


def _minutes(protocol: str = "", track: str = "") -> dict[str, Any]:
    """Minutes of the quickest first run, and where: on which track, or under which protocol."""
    from benchmark.report.run_times import first_runs

    found = first_runs(protocol, track)
    place = min(found, key=lambda place: (found[place], place), default=None)
    if place is None:
        return {"minutes": None, "quickest": None}
    return {"minutes": round(found[place] / 60, 1), "quickest": place[0 if track else 1]}


def print_card(name: str, *, as_json: bool, whole: bool = False) -> None:
    """The card of a method, protocol or track: on a screen, or the ``whole`` of it."""
    card = _card(name)
    if as_json:
        echo_json(card)
        return
    for line in cards.long_lines(card) if whole else cards.short_lines(card, name):
        echo(line)


def _card(name: str) -> dict[str, Any]:
    if name.partition(":")[0] in registry.method_files():
        from benchmark.report.card import method_card  # reads records, which takes numpy

        return method_card(name)
    if name.partition(":")[0] in registry.protocol_files():
        return load_protocol(name).model_dump()
    if name in registry.track_files():
        return _track_card(load_track(name))
    if name.endswith((".yaml", ".yml")):
        of_track = {"dataset", "extends"} & read_yaml(Path(name)).keys()
        return _track_card(load_track(name)) if of_track else load_protocol(name).model_dump()
    known = [*registry.method_files(), *registry.protocol_files(), *registry.track_files()]
    raise registry.not_known("name", name, known)


def _track_card(track: Track) -> dict[str, Any]:
    """A track, what its dataset reads, and the options that ``data`` may have."""
    from benchmark.report.card import option_notes

    dataset = registry.check_options(track.dataset, track.data, f"{track.id}.yaml: data")
    about = inspect.cleandoc(inspect.getmodule(type(dataset)).__doc__ or "")
    return track.model_dump() | {"about_the_data": about, "data_options": option_notes(dataset)}
