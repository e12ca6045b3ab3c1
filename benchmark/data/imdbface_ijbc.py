"""``imdbface_ijbc``: trained on IMDB-Face (Wang et al., 2018), evaluated on IJB-C (BCT).

Below the data root: a folder ``imdb_face`` (or ``IMDb-Face``) with one folder a person, named by
the person's index in ``IMDb-Face.csv`` (``nm0000001``), which hold the faces cut out of
the pictures of that table; people are in the order of these numbers. And IJB-C's folder, see
:mod:`benchmark.data.ijbc`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmark.config.declarations import Origin
from benchmark.data.base import Ints
from benchmark.data.files import Files, first_of, images_by_class
from benchmark.data.ijbc import IjbcDatasetReader, tables
from benchmark.data.recordio import Records

_FOLDERS = ("imdb_face", "IMDb-Face", "IMDB-Face", "imdbface")
_PERSON = re.compile(r"nm(\d{1,12})")


@dataclass(frozen=True)
class ImdbFaceIjbc(IjbcDatasetReader):
    """Faces of IMDB-Face and of IJB-C."""

    origin: ClassVar = Origin(
        "https://github.com/fwang91/IMDb-Face",
        how="the list IMDb-Face.csv is linked there, with the addresses of the pictures, which are "
        "cut out by its rectangles; IJB-C is asked for at "
        "https://www.nist.gov/programs-projects/face-challenges, its lists are insightface's",
        counts={
            "test images": 469_375, "pairs": 15_658_489, "probe templates": 19_593,
            "gallery templates": 3_531,
        },
        source="insightface's lists of IJB-C; of IMDB-Face fewer pictures can be had each year",
    )  # fmt: skip

    def files(self, root: Path) -> list[Path]:
        """The images to train on, and IJB-C's tables."""
        source, _ = self.faces(root)
        assert isinstance(source, Files)
        return source.paths + tables(root)

    def faces(self, root: Path) -> tuple[Files | Records, Ints]:
        """The faces to train on, and the number of the person that each shows."""
        folder = first_of(root, *_FOLDERS).name
        return images_by_class(root, folder, _PERSON, "nm0000001")
