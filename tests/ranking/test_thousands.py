"""Every comparison with plain loops again, on thousands of random shapes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1]
EXAMPLES = 3000
COMPARISONS = {
    "ranking/test_ranks.py": [
        "agrees_with_plain_loops",
        "scores_beside_each_other_in_float32",
        "shards_and_permutations_change_nothing",
    ],
    "ranking/test_torch_backend.py": ["torch_path_counts_the_same_on_integers"],
    "metrics/test_backfill_curves.py": [
        "every_point_agrees_with_plain_loops",
        "ends_are_cross_test_and_self_test_exactly",
        "flips",
        "groups_and_their_gap",
        "share_of_each_group_that_is_filled",
        "area_and_offline",
    ],
    "metrics/test_backfill_orders.py": ["orders_agree_with_sorting"],
    "metrics/test_verification.py": ["roc_is_sklearns", "nearest_far"],
    "metrics/test_templates.py": ["templates_follow_the_rule"],
    "metrics/test_invariance.py": [
        "permuting_the_gallery_leaves_the_curves",
        "permuting_either_side_leaves_verification",
        "shards_of_identical_vectors",
    ],
    "metrics/test_statistics.py": ["kendall_tau_agrees_with_counting"],
    "metrics/test_intervals.py": [
        "a_mean_by_plain_loops",
        "a_threshold_in_draws_by_plain_loops",
        "backfilling_by_plain_loops",
    ],
    "metrics/test_references.py": [
        "reidentification",
        "identification",
        "identification_while_the_gallery_is_backfilled",
        "verification",
        "compatibility",
        "cka_in_gram_form",
        "mean_difference",
        "holm",
        "rates_of_scores",
        "detection_and_identification_rate",
        "pooled_galleries_and_the_script_without_ranks",
        "cut_offs",
        "gains",
        "mean_over_seeds",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPARISONS)
def test_thousands(name):
    tests = [f"{HERE / name}::test_{test}" for test in COMPARISONS[name]]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--hypothesis-show-statistics",
         *tests],
        env={**os.environ, "METRIC_EXAMPLES": str(EXAMPLES)},
        cwd=HERE.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    counts = re.findall(r"generate phase.*?\n\s+.*?\n\s+- (\d+) passing", done.stdout)
    assert len(counts) == len(tests), done.stdout
    assert min(map(int, counts)) >= EXAMPLES // 2, done.stdout
