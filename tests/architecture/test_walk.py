"""How far one job walks through the library: a third fewer switches from file to file than before it was rebuilt."""

import json
import os
import subprocess
import sys
from pathlib import Path

WALK = Path(__file__).parents[2] / "scripts" / "walk.py"
BEFORE = {"fit": 475, "secure": 1693}


def test_a_job_switches_files_a_third_less_often_than_it_did() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, str(WALK), "--json"], capture_output=True, text=True, check=True, env=environment
    )
    walks = json.loads(found.stdout)
    for job, switches in BEFORE.items():
        assert walks[job]["switches"] <= switches * 2 / 3, f"{job}: see `python scripts/walk.py --files {job}`"
