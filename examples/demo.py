"""OptPess-Mix learns to stream video within a budget, in seconds; then both algorithms of the paper.

First the problem of a metered link (10 states, 10 steps): OptPess-Mix plays 10^5 episodes beside S-OPS
and always-the-safe-policy. Then, on the two-state instance whose optimum is known by hand and at the
paper's own constants, OptPess-LP plays 10^7 episodes, OptPess-PrimalDual 10^8 and OptPess-Mix 10^6,
twice each. Every deployed policy is evaluated exactly on the true model. Prints the results and writes
the curves to demo-output/. Run it with `make demo`; `python examples/demo.py --short` plays a
thousandth of the episodes of the second part.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import optpess as op
from optpess.plot import plot_runs

OUTPUT = Path("demo-output")
LIMIT, SAFE_COST = 0.6, 0.135


def stream_video() -> None:
    """OptPess-Mix on the metered link, beside what else is safe from the first episode."""
    problem, episodes = op.zoo.problem("media"), 100_000
    model = problem.model
    margin = op.SafetyMargin(float(model.cost_limits[0]), float(problem.safe_costs[0]))
    given = {
        "shape": model.shape,
        "initial": model.initial,
        "baseline": op.SafeBaseline(problem.safe_policy, margin),
    }
    optimum = op.solve(model).value
    limit, safe = margin.cost_limit, margin.safe_cost
    print("The problem: video over a metered link; 10 states, 10 steps. The fast link costs 1,")
    print(f"  at most {limit:g} in expectation; a policy of cost {safe:g} is known.")
    print(f"  exact optimum {optimum:.3f} an episode, the safe policy earns {earned(problem):.3f}\n")
    lp = op.OptPessLP(**given, num_episodes=10**8)
    contestants = {
        "always the safe policy": op.AlwaysBaseline(**given, num_episodes=episodes),
        "S-OPS": op.SOPS(**given, num_episodes=episodes, replan_growth=0.25),
        "OptPess-Mix": op.OptPessMix(**given, knowledge=op.Knowledge(stationary=True)),
    }
    heads = f"{'reward an episode':>18}{'last tenth':>12}{'violating':>11}{'seconds':>9}"
    print(f"  {'100,000 episodes':<24}{heads}")
    runs = {}
    for name, learner in contestants.items():
        start = time.perf_counter()
        runs[name] = run = op.simulate(model, learner, episodes=episodes, seed=2021, progress=False)
        seconds = time.perf_counter() - start
        mean = optimum - run.reward_regret[0, -1] / episodes
        late = optimum - late_regret(run)
        violating = int(run.violating_episodes.sum())
        print(f"  {name:<24}{mean:>18.3f}{late:>12.3f}{violating:>11}{seconds:>9.2f}")
    leaves = op.forecast(model, lp).leaves_baseline
    print(f"  OptPess-LP at the paper's constants would play the safe policy until episode {leaves:,}.")
    print(f"  OptPess-Mix promises: {runs['OptPess-Mix'].guarantee}\n")
    OUTPUT.mkdir(exist_ok=True)
    plot_runs(runs).savefig(OUTPUT / "streaming.png", dpi=110)


def earned(problem: op.zoo.Problem) -> float:
    """The reward of the safe policy."""
    model = problem.model
    return op.evaluate(problem.safe_policy, model.rewards, model.transitions, model.initial)


def learners(model: op.CMDP, shorter: int) -> dict[str, op.Learner]:
    """The algorithms. They are given their arguments and nothing else of the true model."""
    margin = op.SafetyMargin(cost_limit=LIMIT, safe_cost=SAFE_COST)
    always_first = np.tile([1.0, 0.0], (2, 2, 1))
    return {
        "OptPess-LP": op.OptPessLP(
            shape=model.shape,
            initial=model.initial,
            baseline=op.SafeBaseline(always_first, margin),
            num_episodes=10**7 // shorter,
        ),
        "OptPess-PrimalDual": op.OptPessPrimalDual(
            shape=model.shape,
            initial=model.initial,
            margin=margin,
            num_episodes=10**8 // shorter,
        ),
        "OptPess-Mix": op.OptPessMix(
            shape=model.shape,
            initial=model.initial,
            baseline=op.SafeBaseline(always_first, margin),
        ),
    }


def solve_exactly(model: op.CMDP) -> None:
    """Prints the optimum of the known model."""
    plan = op.solve(model)
    print("The problem: two states, two actions, two steps; expected cost at most 0.6.")
    print(f"  exact optimum          {plan.value:.6f}   (by hand: 79/96 = {79 / 96:.6f})")
    print(f"  price of the limit     {plan.multipliers[0]:.6f}   (by hand: 7/6 = {7 / 6:.6f})")
    print(f"  proven gap             {plan.certificate.gap:.1e}     (bound minus value, to rounding)")
    print(f"  without the limit      {op.solve_unconstrained(model).value:.6f}")


def expect(model: op.CMDP, name: str, learner: op.Learner, shorter: int) -> None:
    """Prints what the run is expected to do."""
    forecast = op.forecast(model, learner)
    print(f"\n{name}: {episodes_of(learner, shorter):,} episodes, {learner.guarantee}")
    if forecast.leaves_baseline is not None:
        print(f"  expected to leave the baseline at episode {forecast.leaves_baseline:,}")
    if forecast.tightening_horizon is not None:
        print(f"  its tightening is small enough from episode {forecast.tightening_horizon:,} on")
    if forecast.seconds is not None:
        print(f"  about {forecast.seconds:.0f} s a replicate on one core")
    print("  running ...", flush=True)


def episodes_of(learner: op.Learner, shorter: int = 1) -> int:
    """How many episodes a learner plays here; OptPess-Mix needs no such number."""
    return 10**6 // shorter if learner.num_episodes is None else learner.num_episodes


def table(runs: dict[str, op.Run]) -> None:
    """Prints the results of all runs beside their guarantees."""
    print(f"\n{'':<34}" + "".join(f"{name:>22}" for name in runs))
    rows = {
        "episodes": lambda run: f"{run.episodes[-1]:,}",
        "regret, mean an episode": lambda run: (
            f"{run.reward_regret[:, -1].mean() / run.episodes[-1]:.5f}"
        ),
        "  over the last tenth": lambda run: f"{late_regret(run):.5f}",
        "growth exponent, last decade": lambda run: f"{run.growth_exponent().mean():.3f}",
        "violating episodes": lambda run: f"{int(run.violating_episodes.max()):,}",
        "worst single violation": lambda run: f"{run.worst_violation.max():.4f}",
        "weak violation, largest": lambda run: f"{run.weak_violation.max():,.1f}",
        "weak violation, at the end": lambda run: f"{run.weak_violation[:, -1].max():,.1f}",
        "strong violation": lambda run: f"{run.strong_violation[:, -1].max():,.1f}",
        "episodes on the baseline": lambda run: f"{int(run.baseline_episodes.max()):,}",
        "guarantee": lambda run: type(run.guarantee).__name__,
        "  with probability": lambda run: (
            f"{run.guarantee.probability:.2f}" if run.guarantee else "none"
        ),
    }
    for label, cell in rows.items():
        print(f"  {label:<32}" + "".join(f"{cell(run):>22}" for run in runs.values()))


def late_regret(run: op.Run) -> float:
    """Mean regret an episode over the last tenth of the run."""
    start = int(np.searchsorted(run.episodes, 0.9 * run.episodes[-1]))
    gained = run.reward_regret[:, -1] - run.reward_regret[:, start]
    return float(gained.mean() / (run.episodes[-1] - run.episodes[start]))


def main() -> None:
    """Solves, runs, prints, draws."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--short", action="store_true", help="a thousandth of the episodes")
    shorter = 1000 if arguments.parse_args().short else 1
    # The paper's constants are the subject here, and a short run shows what they mean.
    warnings.simplefilter("ignore", op.GuaranteeWarning)
    stream_video()
    model = op.zoo.pair()
    solve_exactly(model)
    runs = {}
    for name, learner in learners(model, shorter).items():
        expect(model, name, learner, shorter)
        start = time.perf_counter()
        episodes = episodes_of(learner, shorter)
        runs[name] = op.simulate(model, learner, episodes=episodes, replicates=2, seed=2021)
        seconds = time.perf_counter() - start
        print(f"  done: {2 * episodes / seconds:,.0f} episodes a second on this machine")
    table(runs)
    OUTPUT.mkdir(exist_ok=True)
    plot_runs(runs).savefig(OUTPUT / "curves.png", dpi=110)
    print(f"\nThe curves are in {OUTPUT / 'streaming.png'} and {OUTPUT / 'curves.png'}.")


if __name__ == "__main__":
    main()
