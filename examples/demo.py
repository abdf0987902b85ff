"""Video over a metered link: the exact optimum, then twelve learners on the same unknown problem.

OptPess-Mix, S-OPS, both algorithms of the paper at their own constants, the six they are compared with,
and the two ends of the scale: always the safe policy, and no constraint at all. Every deployed policy is
evaluated exactly on the true model. Writes a report with pictures to demo-output/. Run it with
`make demo`; `python examples/demo.py --short` plays a hundredth of the episodes.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import optpess as op

OUTPUT = Path("demo-output")
EPISODES, REPLICATES, SEED = 100_000, 4, 2021


def learners(problem: op.zoo.Problem, episodes: int) -> dict[str, op.Learner]:
    """The learners. They are given their arguments and nothing else of the true model."""
    model, baseline = problem.model, problem.baseline
    sizes = {"shape": model.shape, "initial": model.initial}
    told = sizes | {"num_episodes": episodes}
    safe, margin = told | {"baseline": baseline}, told | {"margin": baseline.margin}
    return {
        "OptPess-Mix": op.OptPessMix(
            **sizes, baseline=baseline, knowledge=op.Knowledge(stationary=True)
        ),
        "S-OPS": op.SOPS(**safe, replan_growth=0.25),
        "OptPess-LP": op.OptPessLP(**safe),
        "OptPess-PrimalDual": op.OptPessPrimalDual(**margin),
        "C-UCRL (told P)": op.CUCRL(**safe, transitions=model.transitions),
        "OptCMDP": op.OptCMDP(**margin),
        "OptCMDP-bonus": op.OptCMDPBonus(**margin),
        "OptDual-CMDP": op.OptDualCMDP(**margin),
        "OptPrimalDual-CMDP": op.OptPrimalDualCMDP(**margin),
        "OPDOP": op.OPDOP(**margin),
        "no constraint": op.UnconstrainedOptimistic(**margin),
        "always the safe policy": op.AlwaysBaseline(**safe),
    }


def last_tenth(run: op.Run) -> float:
    """Expected reward of an episode in the last tenth of the run, mean over replicates."""
    late = run.episodes > 0.9 * run.episodes[-1]
    windows = run.episodes[late] - run.episodes[:-1][late[1:]]
    return float(run.deployed_value[:, late].mean(axis=0) @ windows / windows.sum())


def main() -> None:
    """Solves, compares, writes the report."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--short", action="store_true", help="a hundredth of the episodes")
    episodes = EPISODES // 100 if arguments.parse_args().short else EPISODES
    # The paper's constants are part of the subject: most learners stay where they start.
    warnings.filterwarnings("ignore", message="this run is expected to play the baseline")
    warnings.simplefilter("ignore", op.GuaranteeWarning)

    problem = op.zoo.problem("media")
    plan = op.solve(problem.model)
    found = op.compare(
        problem.model,
        learners(problem, episodes),
        episodes=episodes,
        replicates=REPLICATES,
        seed=SEED,
    )
    OUTPUT.mkdir(exist_ok=True)
    found.save(OUTPUT / "comparison.npz")
    report = op.write_report(
        OUTPUT / "report.html", found, title="Video over a metered link: twelve learners"
    )

    mix = found.runs["OptPess-Mix"]
    above = [name for name, run in found.runs.items() if run.violating_episodes.any()]
    print(
        f"Exact optimum: {plan.value:.3f} reward an episode within a limit of "
        f"{problem.model.cost_limits[0]:g}; the safe policy earns {mix.baseline_value:.3f}."
    )
    print(
        f"OptPess-Mix: {last_tenth(mix):.3f} in the last tenth of {episodes:,} episodes; "
        f"{int(mix.violating_episodes.sum())} of {episodes * REPLICATES:,} episodes above the limit."
    )
    print(f"Above the limit at some time: {', '.join(above) or 'none'}.")
    print(f"The report: {report}")


if __name__ == "__main__":
    main()
