"""Modules of the folder `experiments`, which import each other by their bare names."""

import importlib
import sys
from pathlib import Path

EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"


def experiment(name):
    """The module of that name."""
    sys.path.insert(0, str(EXPERIMENTS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(EXPERIMENTS))
