"""Queries looked at on a record's page, from a run to the page."""

from __future__ import annotations

import base64
import io
import re
import shutil

import numpy as np
import pytest
import yaml
from PIL import Image
from support.command import call
from support.toy_runs import ONE_EPOCH, run_toy

from benchmark.data.base import Dataset, read_options
from benchmark.harness import board_runs
from benchmark.records.details_files import find_details
from benchmark.records.files import find_records
from leaderboard.site import build_folder

TILE = re.compile(r'src="data:image/webp;base64,([^"]+)" alt="([^"]+)"')


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    run_toy(["procrustes"], root, **ONE_EPOCH)
    return root / "out"


def pixels(encoded: str) -> np.ndarray:
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    return np.asarray(image.convert("L"), np.float64)


def test_pages_show_the_pictures_of_the_right_items(records, tmp_path) -> None:
    code, out, _ = call("results", "pictures", "--out", records)
    assert code == 0
    assert "pictures, " in out
    build_folder(records, tmp_path / "site")
    data = read_options("toy").load(None)
    items = data.evaluations["test"]
    for stored in find_records(records):
        record = stored.record
        page = next((tmp_path / "site").rglob(f"records/*/{record.method}.html"))
        tiles = TILE.findall(page.read_text())
        assert len(tiles) == 12 * 11
        details = find_details(record, stored.path)
        nearest = details.nearest
        for i in range(0, len(tiles), 11):
            asked = pixels(tiles[i][0])
            # Lossy, so the item is the one whose picture is nearest to the tile.
            shown = [int(_nearest(pixels(tile), items.images)) for tile, _ in tiles[i : i + 11]]
            assert tiles[i][1] == "The query"
            place = nearest.queries.tolist().index(shown[0])
            assert shown[1:6] == nearest.items[0, place].tolist()
            assert shown[6:] == nearest.items[1, place].tolist()
            same = items.labels[shown[1:]] == items.labels[shown[0]]
            words = ["same class" if each else "another class" for each in same]
            assert [alt for _, alt in tiles[i + 1 : i + 11]] == words
            assert asked.shape == items.images.shape[2:]


def _nearest(tile: np.ndarray, images: np.ndarray) -> int:
    return ((images.mean(axis=1) - tile) ** 2).sum(axis=(1, 2)).argmin()


def test_without_pictures_no_section_and_with_drawn_ones_some(records, tmp_path) -> None:
    for path in records.rglob("pictures/*"):
        path.write_bytes(b"damaged")
        assert [each.file for each in build_folder(records, tmp_path / "plain")[1]] == [
            path.relative_to(records).as_posix()
        ]
        path.unlink()
    build_folder(records, tmp_path / "plain")
    page = next((tmp_path / "plain").rglob("records/*/procrustes.html"))
    assert "Queries looked at" not in page.read_text()
    words = ("leaderboard", records, "--out", tmp_path / "drawn", "--data-root")
    code, _, err = call(*words, "toys=.")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "toys" in err
    assert call(*words, "toy=.")[0] == 0
    page = next((tmp_path / "drawn").rglob("records/*/procrustes.html"))
    assert len(TILE.findall(page.read_text())) == 12 * 11


def test_pictures_come_with_the_records_of_a_board(records, tmp_path, monkeypatch) -> None:
    """Of the board's first seed; none where the data is other than the records'."""
    board = {
        "precision": "32-true", "threads": 1, "device": "cpu", "seeds": [0, 1],
        "lists": {"few": ["procrustes"]},
        "boards": [{"track": "toy", "protocols": ["open-class"], "methods": "few"}],
    }  # fmt: skip
    path = tmp_path / "board.yaml"
    path.write_text(yaml.safe_dump(board))
    folder = tmp_path / "records"
    shutil.copytree(records, folder, ignore=shutil.ignore_patterns("pictures"))
    monkeypatch.setattr(board_runs, "carry_out_jobs", lambda *_: ([], []))
    monkeypatch.chdir(tmp_path)  # not beside the committed records, which it would read too

    def ran() -> str:
        code, out, err = call("results", "run", "--board", path, "--out", folder)
        assert code == 0, err
        return out + err

    assert "pictures, " in ran()
    (drawn,) = (folder / "pictures").iterdir()
    drawn.unlink()
    monkeypatch.setattr(Dataset, "fingerprint", lambda self: "another")
    assert "of other data of toy" in ran()
    assert not drawn.exists()
    board["boards"][0]["set"] = {"recipe.epochs": 1}
    path.write_text(yaml.safe_dump(board))
    assert "pictures" not in ran()
