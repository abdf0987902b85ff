"""Calls public functions with arguments that do not belong there, for as long as one likes.

    python experiments/fuzz.py --minutes 10 --seed 1

Prints the number of calls and every fault, once for each function, argument and kind of error, with what
was given; exits with 1 if there is one. Run by `make fuzz`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))

from support import hostile  # noqa: E402 - found by the path above


def main() -> None:
    """Calls until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    source, calls = random.Random(given.seed), hostile.calls()
    names, faults, made = list(calls), {}, 0
    end = time.monotonic() + 60 * given.minutes
    while time.monotonic() < end:
        name = source.choice(names)
        fault = hostile.outcome(name, calls[name], source)
        made += 1
        if fault is not None:
            faults.setdefault((name, fault.argument, fault.error.partition(":")[0]), fault)
    print(f"{made} calls of {len(names)} functions, {len(faults)} kinds of faults")
    for fault in faults.values():
        print(fault)
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
