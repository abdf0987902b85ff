"""The benches that are not about peers run where none is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "benches" / "python"


@pytest.mark.parametrize("script", ["criterion", "evaluate", "plan", "processes"])
def test_a_bench_without_peers_asks_for_none(script):
    # A module that is None in sys.modules is one that cannot be imported.
    hidden = "import sys; sys.modules.update(numba=None, jax=None); "
    command = [sys.executable, "-c", hidden + f"import {script}"]
    done = subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
