"""Learners on small problems, and ways to feed them."""

import functools

import numpy as np
import optpess as op

DELTA = 0.05
SAFE_COST = 0.135  # of `always_first` on the pair
CURVES = ("reward_regret", "weak_violation", "strong_violation", "multiplier")
TOTALS = (
    "worst_violation",
    "violating_episodes",
    "first_violation",
    "baseline_episodes",
    "estimation_episodes",
    "first_planned",
    "least_slack",
    "repairs",
    "largest_repair",
    "safe_cost",
)


def always_first(model):
    """The policy that always takes the first action."""
    policy = np.zeros(model.shape)
    policy[:, :, 0] = 1.0
    return policy


def mostly_first(model):
    """A policy that takes the first action most of the time, and every other one now and then."""
    return 0.75 * always_first(model) + 0.25 / model.shape.num_actions


def market(noise=None):
    """Three states, two actions, three steps, all different: the second action pays and costs more."""
    generator = np.random.default_rng(5)
    transitions = generator.dirichlet(np.ones(3), size=(3, 3, 2))
    rewards = np.stack([generator.uniform(0, 0.3, (3, 3)), generator.uniform(0.5, 1, (3, 3))], axis=2)
    costs = np.stack([generator.uniform(0, 0.1, (3, 3)), generator.uniform(0.4, 1, (3, 3))], axis=2)
    noise = op.Bernoulli() if noise is None else noise
    return op.CMDP(transitions, rewards, costs, 1.2, [0.5, 0.3, 0.2], noise=noise)


def safe_cost_of(model, policy=None):
    """A bound on the cost of the baseline, with nothing to spare."""
    policy = always_first(model) if policy is None else policy
    return op.evaluate(policy, model.costs[0], model.transitions, model.initial) + 1e-9


def margin_of(model, policy=None):
    limit = float(model.cost_limits[0])
    return op.SafetyMargin(cost_limit=limit, safe_cost=safe_cost_of(model, policy))


def baseline_of(model, policy=None):
    policy = always_first(model) if policy is None else policy
    return op.SafeBaseline(policy, margin_of(model, policy))


def stays_in_range(model):
    """Whether all that is observed lies in [0, 1]."""
    return not isinstance(model.noise, op.Gaussian)


def optpess_lp(model, num_episodes, **changes):
    arguments = {
        "shape": model.shape,
        "initial": model.initial,
        "baseline": baseline_of(model),
        "num_episodes": num_episodes,
        "failure_probability": DELTA,
        "bounded_observations": stays_in_range(model),
    }
    return op.OptPessLP(**arguments | changes)


def primal_dual(model, num_episodes, **changes):
    arguments = {
        "shape": model.shape,
        "initial": model.initial,
        "margin": margin_of(model),
        "num_episodes": num_episodes,
        "failure_probability": DELTA,
        "bounded_observations": stays_in_range(model),
    }
    return op.OptPessPrimalDual(**arguments | changes)


def every_learner(model, num_episodes, confidence, seed=0):
    """A way to make each learner, by name; OptPess-LP with either engine, and with an unknown cost."""
    endless = {"shape": model.shape, "initial": model.initial, "seed": seed}
    shared = endless | {"num_episodes": num_episodes}
    chances = {"failure_probability": DELTA, "confidence": confidence}
    policy, limit = always_first(model), float(model.cost_limits[0])
    baseline = baseline_of(model)
    estimated = op.SafeBaseline.estimated(policy, limit, radius=op.PaperRadius())
    with_margin = (
        op.OptPessPrimalDual,
        op.UnconstrainedOptimistic,
        op.OptCMDP,
        op.OptCMDPBonus,
        op.OptDualCMDP,
        op.OptPrimalDualCMDP,
        op.OPDOP,
    )
    return {
        "OptPess-LP": lambda: op.OptPessLP(baseline=baseline, **shared, **chances),
        "OptPess-LP, HiGHS": lambda: op.OptPessLP(
            baseline=baseline, engine="highs", **shared, **chances
        ),
        "OptPess-LP, estimated": lambda: op.OptPessLP(baseline=estimated, **shared, **chances),
        "AlwaysBaseline": lambda: op.AlwaysBaseline(baseline=baseline, **shared),
        "AlwaysBaseline, estimated": lambda: op.AlwaysBaseline(baseline=estimated, **shared),
        "CUCRL": lambda: op.CUCRL(transitions=model.transitions, baseline=baseline, **shared, **chances),
        "SOPS": lambda: op.SOPS(baseline=baseline, **shared, **chances),
        "OptPessMix": lambda: op.OptPessMix(baseline=baseline, **endless, **chances),
        "OptPessMix, estimated": lambda: op.OptPessMix(baseline=estimated, **endless, **chances),
        "SOPS, growth": lambda: op.SOPS(baseline=baseline, replan_growth=0.3, **shared, **chances),
    } | {
        kind.__name__: functools.partial(kind, margin=margin_of(model), **shared, **chances)
        for kind in with_margin
    }


def run_of(model, learner, **options):
    """A simulation without a progress bar."""
    return op.simulate(model, learner, **{"progress": False} | options)


def episode(trace, number):
    """One episode of a trace, as the arguments of `observe`."""
    return (
        trace.states[number],
        trace.actions[number],
        trace.rewards[number],
        trace.costs[number],
    )


def fed(learner, trace, count):
    """The learner, after it has seen so many episodes of its own trace."""
    for number in range(count):
        learner.next_policy()
        learner.observe(*episode(trace, number))
    return learner


def actions_of(deployment, states):
    """An action of the deployed policy in each of the states of an episode."""
    steps = range(len(deployment.policy))
    return [deployment.action(step, state) for step, state in zip(steps, states, strict=False)]


def played(deployment, model, number, seed=3):
    """An episode of the deployed policy in a model, as the arguments of `observe`."""
    sampled = op.sample(model, deployment.policy, 1, seed=seed, replicate=number)
    states, actions, rewards, costs = (array[0] for array in sampled)
    return states, actions, rewards, costs[0] if len(costs) == 1 else costs


def seen_by(learner, model, count, start=0):
    """Plays episodes in a model; returns all that the learner observed, as arrays ``[K, H]``."""
    rows = []
    for number in range(start, start + count):
        rows.append(played(learner.next_policy(), model, number))
        learner.observe(*rows[-1])
    columns = zip(*rows, strict=True) if rows else [np.zeros((0, model.shape.horizon), int)] * 4
    return tuple(np.array(column) for column in columns)


def driven(learner, model, count, start=0):
    """The learner, after it has played so many episodes in a model."""
    seen_by(learner, model, count, start)
    return learner


def stored(learner):
    """All that a learner knows, as bytes."""
    return learner._inner.to_bytes()


def same_record(first, second):
    """Whether two records agree in every bit."""
    names = ("episodes", "replicates", *CURVES, *TOTALS)
    if first.plays.keys() != second.plays.keys():
        return False
    arrays = [
        [getattr(run, name) for name in names]
        + list(run.plays.values())
        + [run.weight, run.certified_cost, run.mixtures]
        for run in (first, second)
    ]
    bits = [[None if array is None else array.tobytes() for array in record] for record in arrays]
    return bits[0] == bits[1]
