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


def market(noise=None):
    """Three states, two actions, three steps, all different: the second action pays and costs more."""
    generator = np.random.default_rng(5)
    transitions = generator.dirichlet(np.ones(3), size=(3, 3, 2))
    rewards = np.stack([generator.uniform(0, 0.3, (3, 3)), generator.uniform(0.5, 1, (3, 3))], axis=2)
    costs = np.stack([generator.uniform(0, 0.1, (3, 3)), generator.uniform(0.4, 1, (3, 3))], axis=2)
    noise = op.Bernoulli() if noise is None else noise
    return op.CMDP(transitions, rewards, costs, 1.2, [0.5, 0.3, 0.2], noise=noise)


def safe_cost_of(model):
    """A bound on the cost of the baseline, with nothing to spare."""
    return op.evaluate(always_first(model), model.costs[0], model.transitions, model.initial) + 1e-9


def margin_of(model):
    return op.SafetyMargin(cost_limit=float(model.cost_limits[0]), safe_cost=safe_cost_of(model))


def optpess_lp(model, num_episodes, **changes):
    baseline = op.SafeBaseline(always_first(model), margin_of(model))
    arguments = {
        "shape": model.shape,
        "initial": model.initial,
        "baseline": baseline,
        "num_episodes": num_episodes,
        "failure_probability": DELTA,
    }
    return op.OptPessLP(**arguments | changes)


def primal_dual(model, num_episodes, **changes):
    arguments = {
        "shape": model.shape,
        "initial": model.initial,
        "margin": margin_of(model),
        "num_episodes": num_episodes,
        "failure_probability": DELTA,
    }
    return op.OptPessPrimalDual(**arguments | changes)


def every_learner(model, num_episodes, confidence):
    """A way to make each learner, by name; OptPess-LP with either engine, and with an unknown cost."""
    shared = {"shape": model.shape, "initial": model.initial, "num_episodes": num_episodes}
    chances = {"failure_probability": DELTA, "confidence": confidence}
    endless = {name: shared[name] for name in ("shape", "initial")}
    policy, limit = always_first(model), float(model.cost_limits[0])
    baseline = op.SafeBaseline(policy, margin_of(model))
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
    """The learner, after it has seen so many episodes of a trace."""
    for number in range(count):
        learner.next_policy()
        learner.observe(*episode(trace, number))
    return learner


def seen(trace, count):
    """The first episodes of a trace, as arrays."""
    return (
        trace.states[:count],
        trace.actions[:count],
        trace.rewards[:count],
        trace.costs[:count],
    )


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
