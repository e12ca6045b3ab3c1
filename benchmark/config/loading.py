"""Protocols and tracks by name or file, and the two together: what a run begins with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmark.config import overrides, registry, suitability
from benchmark.config.data_roots import Root
from benchmark.config.protocols import Protocol
from benchmark.config.reading import build, read_yaml
from benchmark.config.recipes import OF_BACKBONE, OF_HEAD
from benchmark.config.setup import Setup
from benchmark.config.tracks import Track
from benchmark.errors import BenchError, located


def load_protocol(name: str) -> Protocol:
    """A protocol by id, or by the path of a YAML file; ``arch-change:deeper`` is one setting.

    BenchError on an unknown name, or a file that is not as it should be.
    """
    base, _, setting = name.partition(":")
    path, value = _read(base, registry.protocol_files(), "protocol")
    protocol = build(Protocol, value, path.name)
    overrides.check_protocol(protocol, path.name)
    return overrides.with_setting(protocol, setting) if setting else protocol


def load_track(name: str) -> Track:
    """A track by id or path, as :func:`load_protocol` has it; ``extends`` is followed."""
    path, value = _read(name, registry.track_files(), "track")
    track = build(Track, _extended(path, value, ()), path.name)
    with located(path.name):
        registry.known("dataset", track.dataset, registry.datasets())
    protocols = registry.protocol_files()
    with located(f"{path.name}: protocols"):
        for protocol in track.protocols:
            family, _, setting = protocol.partition(":")
            registry.known("protocol", family, protocols)
            if setting:
                load_protocol(protocol)
    return track


@contextmanager
def known_by_id(protocols: Sequence[str] = (), tracks: Sequence[str] = ()) -> Iterator[None]:
    """Let records name protocols and tracks of a user's own files by id, as installed ones.

    Raises:
        BenchError: If one is no YAML file, or not as it should be.
    """
    before = {kind: {**files} for kind, files in registry.OWN_FILES.items()}
    try:
        for kind, paths in (("protocol", protocols), ("track", tracks)):
            load: Callable[[str], Protocol | Track]
            load = load_protocol if kind == "protocol" else load_track
            for path in paths:
                if not path.endswith((".yaml", ".yml")):
                    raise BenchError(f"{kind}: expected a YAML file of your own, got '{path:.80}'")
                registry.OWN_FILES[kind][load(path).id] = Path(path)
        yield
    finally:
        registry.OWN_FILES.update(before)


def set_up(
    protocol: Protocol, track: Track, settings: Mapping[str, Any], methods: Sequence[str],
    data_root: Root = None,
) -> Setup:  # fmt: skip
    """A protocol on a track with the changes of a run, on the data of a folder if that is known.

    Raises:
        UnsuitedError: If the track cannot serve the protocol.
        BenchError: If a key names nothing, a value does not fit, or the protocol still has settings
            to choose from.
    """
    setup = overrides.apply(protocol, track, settings, methods)
    suitability.check(setup, data_root)
    return setup


def _read(name: str, files: Mapping[str, Path], kind: str) -> tuple[Path, dict[str, Any]]:
    is_path = name.endswith((".yaml", ".yml"))
    path = Path(name) if is_path else registry.known(kind, name, files)
    value = read_yaml(path)
    if value.get("id") != path.stem:
        raise BenchError(
            f"{path.name}: id: expected '{path.stem}' as the file's, got {value.get('id')!r}"
        )
    theirs = files.get(path.stem, path)
    if theirs != path and theirs.read_bytes() != path.read_bytes():  # records are told apart by it
        raise BenchError(
            f"{path}: id: '{path.stem}' is a {kind} that is installed, and says something else; "
            "give this one another id and name"
        )
    return path, value


def _extended(path: Path, value: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
    base = value.get("extends")
    if base is None:
        return value
    beside = path.parent / str(base)
    if str(base).endswith((".yaml", ".yml")) and beside.is_file():
        base = str(beside)
    if base in seen:
        raise BenchError(f"{path.name}: extends: goes in a circle over '{base}'")
    with located(f"{path.name}: extends"):
        if not isinstance(base, str):
            raise BenchError(f"expected a track, got {base!s:.60}")
        parent, values = _read(base, registry.track_files(), "track")
    inherited = _extended(parent, values, (*seen, base))
    # Another dataset has other options and other groups.
    if value.get("dataset", inherited.get("dataset")) != inherited.get("dataset"):
        inherited = {k: v for k, v in inherited.items() if k not in ("data", "groups")}
    models = value.get("models") or {}
    if isinstance(models, dict) and isinstance(inherited.get("models"), dict):
        kept = {name: _kept(model, models.get(name)) for name, model in inherited["models"].items()}
        inherited = inherited | {"models": kept}
    return _merged(inherited, value)


def _kept(model: Any, above: Any) -> Any:
    """The rest of a model that another changes: of another backbone or head nothing said of one."""
    if not isinstance(model, dict) or not isinstance(above, dict):
        return model
    gone = OF_BACKBONE if "backbone" in above else ()
    if above.get("head", model.get("head")) != model.get("head"):
        gone = (*gone, *OF_HEAD)
    return {key: value for key, value in model.items() if key not in gone}


def _merged(below: Any, above: Any) -> Any:
    """Two mappings, nested ones as well; of anything else ``above`` holds."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {k: _merged(below[k], v) if k in below else v for k, v in above.items()}
