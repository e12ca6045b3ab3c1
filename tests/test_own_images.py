"""The page on own images: its commands work on photographs that lie as it says."""

import re
import shlex
from pathlib import Path

import pytest
from support.command import call
from support.pictures import write_noise

PAGE = Path(__file__).parents[1] / "docs" / "own-images.md"
TEXT = PAGE.read_text()
RUNS = re.findall(r"^    (bench run [^#\n]+)", TEXT, re.M)


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """A folder to work in, with the page's photographs and track."""
    for i in range(12):
        group = "night" if i % 3 == 0 else "day"
        for camera in (1, 2):
            for n in (0, 1):
                write_noise(tmp_path / "photos" / f"cup-{i:02d}" / f"{group}-cam{camera}-{n}.jpg")
    (track,) = re.findall(r"```yaml\n(.*?)```", TEXT, re.S)
    (tmp_path / "our-photos.yaml").write_text(track)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", RUNS)
def test_the_commands_can_be_planned(photos, line):
    words = [word for word in shlex.split(line)[1:] if word != "--dry-run"]
    code, out, err = call(*words, "--dry-run")
    assert code == 0 and " stages, 0 stored" in out and "data    not here" not in out, err


def test_the_table_of_the_page_is_read(photos):
    (table,) = re.findall(r"```text\n(file,.*?)```", TEXT, re.S)
    (photos / "photos" / "items.csv").write_text(table)
    code, _, err = call(
        "run", "-p", "open-class", "-t", "folder", "--data-root", "photos", "--dry-run"
    )
    assert code == 2 and "items.csv:2: file: there is no file 'a/0001.jpg'" in err
    for name in re.findall(r"^a/\d+\.jpg", table, re.M):
        write_noise(photos / "photos" / name)
    code, _, err = call(
        "run", "-p", "market1501", "-t", "folder", "--data-root", "photos", "--dry-run"
    )
    assert code == 0, err


def test_it_is_linked():
    root = PAGE.parents[1]
    assert "(docs/own-images.md)" in (root / "README.md").read_text()
    assert "(own-images.md)" in (root / "docs" / "README.md").read_text()


def test_readme_says_how_to_install_and_run_in_parallel():
    readme = (PAGE.parents[1] / "README.md").read_text()
    words = ("make install", "pip install '.[ray]'", "`cpu:2`")
    assert [word for word in words if word not in readme] == []
