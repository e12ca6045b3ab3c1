"""Declared scores of tasks, by which protocols that would mix two up are refused."""

import numpy as np
import pytest

from benchmark.config import registry
from benchmark.data.toy import Toy
from benchmark.tasks.base import Task

OPTIONS = {"distance": "cosine", "far": (0.1,), "fpir": (0.1,)}
OF_A_CASE = [n for n in registry.tasks() if isinstance(registry.task(n), Task)]


@pytest.mark.parametrize("name", OF_A_CASE)
def test_a_task_scores_what_it_says(name):
    items = Toy(classes=24).load(None).evaluations["test"]
    vectors = np.random.default_rng(0).standard_normal((len(items), 6)).astype(np.float32)
    task = registry.task(name)
    found = set(task.evaluate(vectors, vectors, items, OPTIONS).scores)
    assert found and all(score.startswith(task.scores) for score in found)
    assert all(any(score.startswith(said) for score in found) for said in task.scores)
