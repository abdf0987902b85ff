"""10^9 episodes of OptPess-PrimalDual on the pair instance, at the paper's constants, judged exactly.

Writes experiments/record/billion.{json,npz}, docs/billion.md and a picture of regret, weak and strong
violation. Run by `make billion`. A shorter run (`--episodes 1000000`) tries it out and leaves all of
that alone: its figures are printed and its picture goes to build/. Progress is shown on a terminal.
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import optpess as op

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "experiments" / "record"
WHOLE = 10**9


def peak_megabytes() -> float:
    """The most memory this process has had, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def summary(run: op.Run, seconds: float, processor: float) -> dict[str, Any]:
    """The figures, as plain numbers."""
    episodes, replicates = int(run.episodes[-1]), len(run.replicates)
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "episodes": episodes,
        "replicates": replicates,
        "guarantee": repr(run.guarantee),
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor, 1),
        "nanoseconds_an_episode": round(processor * 1e9 / (episodes * replicates), 1),
        "peak_megabytes": round(peak_megabytes(), 1),
        "optimal_value": run.optimal_value,
        "regret_final": float(run.reward_regret[:, -1].max()),
        "regret_exponent_last_decade": float(run.growth_exponent().max()),
        "weak_violation_largest": float(run.weak_violation.max()),
        "weak_violation_final": float(run.weak_violation[:, -1].max()),
        "strong_violation_final": float(run.strong_violation[:, -1].max()),
        "violating_episodes": int(run.violating_episodes.max()),
        "worst_violation": float(run.worst_violation.max()),
        "multiplier_final": float(run.multiplier[:, -1].max()),
        "commit": commit or "unknown",
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }


def page(found: dict[str, Any]) -> str:
    """The figures as a page of the documentation."""
    return f"""# A thousand million episodes

Written by `make billion`: OptPess-PrimalDual on the pair instance, at the paper's constants, every
deployed policy judged exactly. Commit {found["commit"]}, {found["date"]}.

| what | figure |
| --- | ---: |
| episodes | {found["episodes"]:,} |
| time | {found["seconds"] / 60:.1f} min, {found["nanoseconds_an_episode"]:.0f} ns an episode |
| peak memory | {found["peak_megabytes"]:.0f} MB |
| regret an episode | {found["regret_final"] / found["episodes"]:.2e} |
| exponent of the regret, last decade | {found["regret_exponent_last_decade"]:.3f} |
| weak violation, largest / final | {found["weak_violation_largest"]:.2f} / \
{found["weak_violation_final"]:.2f} |
| strong violation, final | {found["strong_violation_final"]:,.0f} |
| episodes above the limit | {found["violating_episodes"]:,} |

![Regret, violations and multiplier](figures/billion.png)
"""


def main() -> None:
    """Runs it and writes what it came to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=WHOLE)
    parser.add_argument("--replicates", type=int, default=1)
    parser.add_argument("--seed", type=int, default=2021)
    arguments = parser.parse_args()
    model = op.zoo.pair()
    # The paper's constants are the subject; a trial with --episodes may be short.
    warnings.simplefilter("ignore", op.GuaranteeWarning)
    learner = op.OptPessPrimalDual(
        shape=model.shape,
        initial=model.initial,
        margin=op.SafetyMargin(cost_limit=0.6, safe_cost=0.135),
        num_episodes=arguments.episodes,
    )
    expected = op.forecast(model, learner).seconds * arguments.replicates / 60
    print(f"{arguments.episodes:,} episodes, about {expected:.1f} min of processor time", flush=True)
    start, processor = time.perf_counter(), time.process_time()
    run = op.simulate(model, learner, replicates=arguments.replicates, seed=arguments.seed)
    found = summary(run, time.perf_counter() - start, time.process_time() - processor)
    print(json.dumps(found, indent=2))
    whole = arguments.episodes >= WHOLE
    figures = ROOT / "docs" / "figures" if whole else ROOT / "build"
    figures.mkdir(parents=True, exist_ok=True)
    run.plot().savefig(figures / "billion.png", dpi=110)
    if whole:
        RECORD.mkdir(parents=True, exist_ok=True)
        run.save(RECORD / "billion.npz")
        (RECORD / "billion.json").write_text(json.dumps(found, indent=2) + "\n")
        (ROOT / "docs" / "billion.md").write_text(page(found))


if __name__ == "__main__":
    main()
