"""Small records of every kind a report can be about."""

import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import optpess as op

HOSTILE = "<script>alert(1)</script> & \"quoted\" 'name'"
OLD_FILE = Path(__file__).parents[1] / "unit" / "files" / "run-1.npz"


def told(problem):
    return {"shape": problem.model.shape, "initial": problem.model.initial}


def mix(problem, **changes):
    return op.OptPessMix(**told(problem) | {"baseline": problem.baseline} | changes)


def margin_of(problem):
    return op.SafetyMargin(float(problem.model.cost_limits[0]), float(problem.safe_costs[0]))


@cache
def pair():
    return op.zoo.problem("pair")


@cache
def run(replicates=3, episodes=200):
    return op.simulate(
        pair().model, mix(pair()), episodes=episodes, replicates=replicates, progress=False
    )


@cache
def learners(episodes=200):
    given = told(pair()) | {"num_episodes": episodes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", op.GuaranteeWarning)
        return {
            "mix": mix(pair()),
            HOSTILE: op.OptPessLP(baseline=pair().baseline, confidence=op.Sharp(), **given),
            "dual": op.OptPessPrimalDual(margin=margin_of(pair()), **given),
            "free": op.UnconstrainedOptimistic(margin=margin_of(pair()), **given),
        }


@cache
def comparison():
    return op.compare(pair().model, learners(), replicates=2, episodes=200, progress=False)


@cache
def run_of(name):
    """The run of one of the learners, by its name in the comparison."""
    return comparison().runs[name]


@cache
def void():
    """A run whose baseline costs more than the learner was told."""
    baseline = op.SafeBaseline(pair().safe_policy, op.SafetyMargin(0.6, 0.05))
    learner = op.OptPessLP(baseline=baseline, num_episodes=50, **told(pair()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op.simulate(pair().model, learner, progress=False)


@cache
def several_limits():
    problem = op.zoo.problem("inventory_three_limits")
    return op.simulate(problem.model, mix(problem), episodes=60, replicates=2, progress=False)


@cache
def with_units():
    """Rewards up to 10, one cost of 0 to 4 and one of 1 to 2."""
    model = pair().model
    costs = np.concatenate([4.0 * model.stored_costs(), 1.0 + model.stored_costs()])
    made = op.CMDP.stationary(
        model.transitions,
        10.0 * model.stored_rewards(),
        costs,
        np.array([2.4, 2.6]),
        model.initial,
        horizon=model.shape.horizon,
        reward_range=(0, 10),
        cost_range=[(0, 4), (1, 2)],
    )
    margin = op.SafetyMargin((2.4, 2.6), (0.54, 2.135))
    learner = op.OptPessMix(
        shape=made.shape,
        initial=made.initial,
        baseline=op.SafeBaseline(pair().safe_policy, margin),
        reward_range=(0, 10),
        cost_range=[(0, 4), (1, 2)],
    )
    return op.simulate(made, learner, episodes=60, replicates=2, audit=True, progress=False)


@cache
def old():
    return op.load_run(OLD_FILE)


class Still:
    """One state; the action pays and costs its number."""

    num_states, num_actions = 1, 2

    def reset(self):
        return 0

    def step(self, action):
        return 0, float(action), float(action), False


@cache
def rollout(episodes=40):
    env = Still()
    shape = op.environments.sizes(env, horizon=1)
    safe = op.policy_from_actions([[0] * shape.num_states], num_actions=2)
    baseline = op.SafeBaseline(safe, op.SafetyMargin(cost_limit=0.5, safe_cost=0.0))
    learner = op.OptPessMix(shape=shape, initial=0, baseline=baseline)
    return op.rollout(learner, env, episodes=episodes, progress=False)


def no_episode():
    """A rollout that was stopped before the end of its first episode."""
    made = rollout()
    parts = {name: getattr(made, name)[:0] for name in ("episodes", "returns", "costs", "lengths")}
    return replace(made, sources=[], certified_costs=made.certified_costs[:0], **parts)


EVERY = {
    "one run": lambda: (run(),),
    "one replicate": lambda: (run(1),),
    "one episode": lambda: (run(1, 1),),
    "a comparison": lambda: (comparison(),),
    "several runs": lambda: (run_of("mix"), run_of(HOSTILE), run_of("mix")),
    "a void run": lambda: (void(),),
    "three limits": lambda: (several_limits(),),
    "units": lambda: (with_units(),),
    "an old run": lambda: (old(),),
    "a rollout": lambda: (rollout(),),
    "several parts": lambda: (run(1), void(), rollout()),
}


@cache
def page_of(kind, title=None):
    """The HTML of the report of one of these."""
    with TemporaryDirectory() as folder:
        return op.write_report(Path(folder) / "report.html", *EVERY[kind](), title=title).read_text(
            "utf-8"
        )
