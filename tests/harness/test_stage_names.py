"""The stages of the core tracks keep their names: nothing that was computed is computed again."""

import json

from support import stage_names


def test_stages_of_the_core_tracks_keep_their_names():
    committed, now = json.loads(stage_names.FILE.read_text()), stage_names.stage_names()
    for kind in ("protocols", "methods"):
        changed = sorted(
            key
            for key in committed[kind].keys() & now[kind].keys()
            if committed[kind][key] != now[kind][key]
        )
        assert not changed, f"renamed on purpose? then `make stage-names`: {changed}"
        assert committed[kind].keys() == now[kind].keys(), "`make stage-names` adds and removes"
