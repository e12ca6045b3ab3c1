"""``ms1mv3_ijbc``: trained on MS1MV3, evaluated on IJB-C (MixBCT).

Below the data root: ``train.rec`` and ``train.idx`` (InsightFace's packing, also inside a folder
``ms1m-retinaface-t1``), or one folder a person named by its number; people are in the order of
their numbers. And IJB-C's folder, see :mod:`benchmark.data.ijbc`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmark.config.declarations import Origin, PublishedSplit
from benchmark.data.base import Ints
from benchmark.data.files import Files, Labelled, images_by_class
from benchmark.data.ijbc import IjbcDatasetReader, tables
from benchmark.data.recordio import Records, read_faces
from benchmark.errors import BenchError

_FOLDERS = (".", "ms1m-retinaface-t1", "ms1mv3", "MS1MV3", "train")
_ALL = (0.0, 1.0)
_PERSON = re.compile(r"(?:\d+_)?(\d{1,18})")


@dataclass(frozen=True)
class Ms1mv3Ijbc(IjbcDatasetReader):
    """Faces of MS1MV3 and of IJB-C."""

    origin: ClassVar = Origin(
        "https://github.com/deepinsight/insightface/tree/master/recognition/_datasets_",
        how="MS1MV3 (ms1m-retinaface-t1) is linked there, for research alone; IJB-C is asked for "
        "at https://www.nist.gov/programs-projects/face-challenges, its lists are insightface's",
        counts={
            "training classes": 93_431, "training images": 5_179_510, "test images": 469_375,
            "pairs": 15_658_489, "probe templates": 19_593, "gallery templates": 3_531,
        },
        source="MixBCT 4.1; images and pairs: insightface's lists",
        splits=tuple(
            PublishedSplit(f"MixBCT Table 1: {title}", *shares, *sizes)
            for title, shares, sizes in (
                ("first 30 % of images", ((0.0, 0.3), _ALL), (1_554_138, 93_431)),
                ("other 70 % of images", ((0.3, 1.0), _ALL), (3_625_384, 93_431)),
                ("first 30 % of people", (_ALL, (0.0, 0.3)), (1_581_241, 28_029)),
                ("other 70 % of people", (_ALL, (0.3, 1.0)), (3_598_269, 65_402)),
            )
        ),
    )  # fmt: skip

    def files(self, root: Path) -> list[Path]:
        """The records or images to train on, and IJB-C's tables."""
        rec = _records(root)
        train = _people(root)[0].paths if rec is None else [rec, rec.with_suffix(".idx")]
        return train + tables(root)

    def faces(self, root: Path) -> tuple[Files | Records, Ints]:
        """The faces to train on, and the number of the person that each shows."""
        rec = _records(root)
        return _people(root) if rec is None else read_faces(rec, rec.with_suffix(".idx"))


def _records(root: Path) -> Path | None:
    """The file of records, if there is one."""
    for name in _FOLDERS:
        rec = root / name / "train.rec"
        if rec.is_file():
            if not rec.with_suffix(".idx").is_file():
                raise BenchError(f"{rec}: expected train.idx beside it")
            return rec
    return None


def _people(root: Path) -> Labelled:
    """Images of folders of people, and the people's numbers."""
    for name in _FOLDERS[1:]:
        if (root / name).is_dir():
            return images_by_class(root, name, _PERSON, "17, or 0_17")
    raise BenchError(
        f"{root}: expected train.rec and train.idx, or folders of people in "
        f"{' or '.join(_FOLDERS[1:])}"
    )
