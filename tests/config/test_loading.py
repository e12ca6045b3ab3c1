"""Refusals where a file is read: names, tasks, parameters and options."""

import pytest
import yaml
from support.protocol_files import MINE, OLD, write

from benchmark.config.loading import load_protocol, load_track, set_up
from benchmark.config.protocols import Protocol
from benchmark.config.reading import build
from benchmark.errors import BenchError
from benchmark.harness.requests import make_request as request


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"set": {"protocol.tasks": ["retreival"]}},
         r"set: protocol.tasks: tasks\[0\]: unknown task 'retreival'; did you mean 'retrieval'"),
        ({"settings": [{"name": "a"}, {"name": "b", "set": {"protocol.tasks": ["retreival"]}}]},
         r"settings 'b': protocol.tasks: tasks\[0\]: unknown task 'retreival'"),
        ({"tasks": ["groups", "retrieval", "reidentification"]},
         r"tasks\[2\]: expected scores of other names than those of retrieval, got "
         "reidentification, which has cmc_at_1, cmc_at_5, map too"),
        ({"settings": [{"name": "a"}, {"name": "b", "set": {
            "protocol.tasks": ["reidentification", "retrieval"]}}]},
         r"settings 'b': protocol.tasks: tasks\[1\]: .*than those of reidentification, got retr"),
        ({"version": 0}, "version: expected at least 1, got 0"),
        ({"source": ""}, "source: expected a few words"),
        ({"question": "  "}, "question: expected a few words"),
        ({"generations": [OLD, {"name": "new/er"}]}, "name: expected small letters"),
        ({"generations": [OLD, {"name": "old'"}]}, "name: expected small letters"),
        ({"generations": [OLD, {"name": "recipe"}]}, "name: expected none of .* got 'recipe'"),
        ({"generations": [OLD, {"name": "data"}]}, "name: expected none of .* got 'data'"),
        ({"generations": [OLD, {"name": "bct"}]}, "'bct' is the name of a method"),
    ],
)  # fmt: skip
def test_protocols_refused(tmp_path, changes, words):
    with pytest.raises(BenchError, match=words) as caught:
        load_protocol(write(tmp_path, **changes))
    assert str(caught.value).startswith("mine.yaml: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("bt2.extr", "method bt2: unknown key 'extr'; did you mean 'extra'"),
        ("fct.widht", "method fct: unknown key 'widht'; did you mean 'width'"),
    ],
)
def test_a_protocol_s_parameters_of_any_method_are_checked_in_planning(tmp_path, key, words):
    asked = request(["bct"], write(tmp_path, set={key: 8}), "toy")
    with pytest.raises(BenchError, match=words):
        asked.plan()


def test_options_that_the_dataset_does_not_have(tmp_path):
    protocol = build(Protocol, MINE, "p.yaml")
    with pytest.raises(BenchError, match=r"--set data.classez: unknown key .* mean 'classes'"):
        set_up(protocol, load_track("toy"), {"data.classez": 8}, [])
    path = tmp_path / "other.yaml"
    value = {"id": "other", "version": 1, "title": "O", "extends": "toy", "data": {"classez": 8}}
    path.write_text(yaml.safe_dump(value))
    with pytest.raises(BenchError, match=r"other.yaml: data: unknown key 'classez'"):
        request(["bct"], "open-class", str(path))
    path.write_text(yaml.safe_dump({**value, "version": 0, "data": {}}))
    with pytest.raises(BenchError, match=r"other.yaml: version: expected at least 1"):
        load_track(str(path))
