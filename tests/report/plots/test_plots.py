import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.colors import to_hex

from benchmark.errors import BenchError
from benchmark.report import colours
from benchmark.report.plots import bars, curves, frames, style, tradeoff
from benchmark.report.plots.records import plot
from leaderboard.read.methods import card


def test_svg_is_the_same_every_time(records, tmp_path):
    first = plot(records, tmp_path / "a", formats="svg")
    second = plot(records, tmp_path / "b", formats="svg")
    assert [p.name for p in first] == [
        "open-class-glyphs-tradeoff-cmc_at_1.svg",
        "open-class-glyphs-bars-cmc_at_1.svg",
        "open-class-glyphs-curves.svg",
    ]
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
        assert b"dc:date" not in a.read_bytes()


def test_only_what_was_asked(records, tmp_path):
    plot(records, tmp_path, "cmc_at_1", kinds="bars", formats="png")
    assert [p.name for p in tmp_path.iterdir()] == ["open-class-glyphs-bars-cmc_at_1.png"]
    with pytest.raises(BenchError, match="did you mean 'bars'"):
        plot(records, tmp_path, kinds="bar")
    with pytest.raises(BenchError, match="unknown metric"):
        plot(records, tmp_path, "cmc")


def test_nothing_to_draw(make, tmp_path):
    assert plot([make("lwf", reason="no old head", curves={})], tmp_path) == []
    assert plot([], tmp_path) == []
    diverged = {"train old model (seed 0)": {"model": {"loss": [None, None]}}}
    assert plot([make("a", curves=diverged)], tmp_path, kinds="curves") == []


def test_undefined_and_equal_values_can_be_drawn(make, tmp_path):
    found = [make(m, {"cmc_at_1": 0.5, "map": None}, 0.5, lower=0.5) for m in ("a", "b")]
    assert len(plot(found, tmp_path, "all", kinds="tradeoff,bars", formats="svg")) >= 2


def test_any_name_has_a_file(make, tmp_path):
    names = {"protocol": "p" * 100, "track": "日" * 60, "method": "$x^{$"}
    records = [make(**names), make("b", protocol=names["protocol"], track=names["track"])]
    metric = {"group_a/b__cmc_at_1": 0.5}
    records.append(make("c", metric, metric, protocol="p", track="t"))
    paths = plot(records, tmp_path, "all", kinds="bars", formats="svg")
    assert len(paths) == 2
    assert all(path.is_file() and path.parent == tmp_path for path in paths)
    assert any("group_a-b__cmc_at_1" in path.name for path in paths)


def test_names_do_not_overlap(make):
    methods = ["bct", "fct", "mixbct", "l2", "bt2", "lwf"]
    records = [make(m, 0.6 + 0.002 * i, 0.8 + 0.001 * i) for i, m in enumerate(methods)]
    with style.styled():
        figure = tradeoff.draw(records, "cmc_at_1")
        figure.canvas.draw()
        texts = {text.get_text(): text for text in figure.axes[0].texts}
        boxes = [texts[method].get_window_extent() for method in methods]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[i + 1 :])


@pytest.mark.parametrize("beside", [0.83, 0.855, 0.87, 0.89])
def test_no_line_to_a_point_crosses_a_name(make, beside):
    """Two methods far below the others, whose names lie beside each other at the edge."""
    points = {
        "bct": (0.43, 0.84), "fct": (0.59, 0.9), "mixbct": (0.41, 0.906),
        "independent": (0.14, 0.9), "raw-features": (0.138, beside),
    }  # fmt: skip
    with style.styled():
        figure = tradeoff.draw([make(m, *both) for m, both in points.items()], "cmc_at_1")
        figure.canvas.draw()
        axes = figure.axes[0]
        boxes = [text.get_window_extent().padded(-1) for text in axes.texts]
        leaders = [line.get_path().transformed(line.get_transform()) for line in axes.lines
                   if line.get_linewidth() == 0.7]  # fmt: skip
    assert leaders and len(boxes) == len(points)
    for line in leaders:
        assert not any(line.intersects_bbox(box, filled=False) for box in boxes)


def test_at_most_eight_methods_are_highlighted(make):
    """The best and the front first; of the others only points, in one grey."""
    records = [make("independent", 0.01, 0.95), *(
        make(f"m{i}", 0.6 + 0.01 * i, 0.9 - 0.02 * (i % 3)) for i in range(13)
    ), make("edge", 0.55, 0.94)]  # fmt: skip
    lit = frames.highlighted(records, "cmc_at_1")
    assert lit[0] == "m12" and "edge" in lit and "independent" not in lit
    assert len(lit) == colours.MOST
    with style.styled():
        figure = tradeoff.draw(records, "cmc_at_1")
        axes = figure.axes[0]
        texts = {text.get_text().partition(" (")[0] for text in axes.texts}
        rest = [c for c in axes.collections if c.get_label() == "6 other methods"]
        bars_of = bars.draw(records, "cmc_at_1").axes[0].patches
    assert texts == {*lit, "independent"}
    assert len(rest) == 1 and to_hex(rest[0].get_facecolor()[0]) == colours.REST
    shown = {to_hex(bar.get_facecolor()) for bar in bars_of} - {colours.REST, colours.GREY}
    assert shown <= {colours.colour(method).lower() for method in lit}


def test_few_methods_are_all_highlighted(make):
    records = [make(m, 0.6, 0.8) for m in ("bct", "fct", "keep-old")]
    assert set(frames.highlighted(records, "cmc_at_1")) == {"bct", "fct"}
    looks = style.looks(["bct", "fct"], ["fct"])
    assert looks["palette"] == {"bct": colours.REST, "fct": colours.colour("fct")}


def test_curves_share_what_is_trained_once(make):
    shared = {"train old model (seed 0)": {"model": {"loss": [1.0]}}, "fit fct (seed 0)": {}}
    data = curves.frame([make("a", curves=shared), make("b", curves=shared), make("c", seed=1)])
    losses = data.groupby(["part", "seed"])["loss"].apply(list).to_dict()
    assert losses == {("old model", 0): [1.0], ("c", 1): [2.0, 1.0, 0.5]}


def test_plots_and_pages_load_no_torch(tmp_path, monkeypatch):
    # Cards of methods are kept; making one the first time imports its module.
    monkeypatch.setenv("COMPATBENCH_STORE", str(tmp_path / "store"))
    for name in ("bct", "l2"):
        card(name)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from support import records as f\n"
        "from leaderboard.site import build\n"
        "build([f.make_record(), f.make_record('l2')], sys.argv[2])\n"
        "from benchmark.report.frame import frame; frame([f.make_record()])\n"
        "sys.exit('torch' in sys.modules or 'torchvision' in sys.modules)"
    )
    factory = str(Path(__file__).parents[2])
    words = [sys.executable, "-c", code, factory, str(tmp_path / "site")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
