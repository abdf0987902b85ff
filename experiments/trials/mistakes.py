"""Trial 8: 96 typical mistakes. Each must be refused in one clear line that names what to change.

A refusal counts as clear if it is an exception of optpess (or a warning, or the file
system's error in our words, or Python's own for a missing argument), takes one line, and
names what to change. Else it is a raw error, swallowed (nothing was said) or unclear. A row
is a name, what the message has to name, and the call.
"""

import sys
import warnings

import gymnasium
import numpy as np
import optpess as op
from scipy import sparse

# A sound problem: 3 steps, 4 states, 2 actions. Each mistake changes one thing of it.
H, S, A = 3, 4, 2
P = np.full((S, A, S), 0.25)
R = np.full((S, A), 0.5)
C = np.full((S, A), 0.25)
MU = [1.0, 0.0, 0.0, 0.0]
SAFE = np.tile([1.0, 0.0], (H, S, 1))
MARGIN = op.SafetyMargin(cost_limit=1.0, safe_cost=0.5)
BASELINE = op.SafeBaseline(SAFE, MARGIN)
MASK = np.array([[True, True], [True, False], [True, True], [True, True]])


def model(**changes):
    arguments = dict(transitions=P, rewards=R, costs=C, cost_limit=1.0, initial=MU, horizon=H)
    return op.CMDP.stationary(**arguments | changes)


def mix(**changes):
    return op.OptPessMix(**dict(shape=(H, S, A), initial=MU, baseline=BASELINE) | changes)


def lp(**changes):
    return op.OptPessLP(
        **dict(shape=(H, S, A), initial=MU, baseline=BASELINE, num_episodes=100) | changes
    )


def dual(**changes):
    return op.OptPessPrimalDual(
        **dict(shape=(H, S, A), initial=MU, margin=MARGIN, num_episodes=100) | changes
    )


def started(learner=None):
    learner = learner or mix()
    learner.next_policy()
    return learner


def observe(learner=None, **changes):
    arguments = dict(states=[0, 1, 2], actions=[0, 0, 0], rewards=[0.5] * 3, costs=[0.2] * 3)
    started(learner := learner or mix())
    try:
        learner.observe(**arguments | changes)
    except op.OptPessError:
        learner.observe(**arguments)  # nothing has changed: it still takes a sound episode
        raise


def simulate(**changes):
    arguments = dict(model=model(), learner=mix(), episodes=10, progress=False) | changes
    return op.simulate(arguments.pop("model"), arguments.pop("learner"), **arguments)


class Walk:
    """A sound environment of 4 states and 2 actions; a mistake replaces an answer."""

    num_states, num_actions = 4, 2

    def __init__(self, answer=(1, 0.5, 0.0, False), first=0, **attributes):
        self.answer, self.first = answer, first
        self.__dict__.update(attributes)

    def reset(self, seed=None):
        return self.first

    def step(self, action):
        return self.answer


def drive(env=None, learner=None, **changes):
    shape = op.environments.sizes(Walk(), horizon=H)
    safe = op.policy_from_actions(np.zeros(shape[:2], int), num_actions=A)
    learner = learner or mix(shape=shape, initial=0, baseline=op.SafeBaseline(safe, MARGIN))
    return op.rollout(learner, env or Walk(), **dict(episodes=3, progress=False) | changes)


def with_row(value):
    rows = P.copy()
    rows[1, 0] = value
    return rows


def stored(name, write):
    """A file that something was written to, and its name."""
    write(name)
    return name


def text_file(name, text="something else"):
    with open(name, "w") as file:
        file.write(text)
    return name


def without(module, call):
    """A call as if a library were not installed."""
    found = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == module}
    sys.modules[module] = None
    try:
        call()
    finally:
        del sys.modules[module]
        sys.modules.update(found)


def damaged(name):
    mix().save(name)
    with open(name, "r+b") as file:
        file.seek(200)
        file.write(b"\x00\x01\x02")
    return name


MISTAKES = {
    "models": [
        ("probabilities that sum to 0.8", "transitions", lambda: model(transitions=with_row([0.2] * 4))),
        ("NaN in the transitions", "transitions", lambda: model(transitions=with_row(np.nan))),
        ("an array [A, S, S]", "[A, S, S]", lambda: model(transitions=np.moveaxis(P, 1, 0))),
        ("rewards of a wrong shape", "rewards", lambda: model(rewards=np.zeros((S, 3)))),
        ("rewards and transitions swapped", "transitions", lambda: model(transitions=R, rewards=P)),
        ("rewards of 50 without a range", "reward_range", lambda: model(rewards=R * 100)),
        ("negative costs", "cost_range", lambda: model(costs=-C)),
        ("an object array", "rewards", lambda: model(rewards=np.array([[None, 1]] * S, dtype=object))),
        (
            "ragged rewards",
            "rewards",
            lambda: model(rewards=[[0.1, 0.2], [0.1], [0.1, 0.2], [0.1, 0.2]]),
        ),
        ("a limit of 0", "cost_limit", lambda: model(cost_limit=0.0)),
        ("a limit above the horizon", "cost_limit", lambda: model(cost_limit=50.0)),
        ("two limits and one cost", "cost_limit", lambda: model(cost_limit=[1.0, 1.0])),
        ("a first state that does not exist", "initial", lambda: model(initial=7)),
        ("a horizon of 2.5", "horizon", lambda: model(horizon=2.5)),
        ("noise by its name", "noise", lambda: model(noise="gaussian")),
        (
            "a COO matrix of a wrong shape",
            "transitions",
            lambda: model(transitions=sparse.coo_matrix(np.eye(5))),
        ),
        ("no horizon", "horizon", lambda: op.CMDP.stationary(P, R, C, 1.0, MU)),
    ],
    "planning": [
        ("a limit that nobody meets", "limit", lambda: op.solve(model(), cost_limit=0.1)),
        ("an engine that does not exist", "engine", lambda: op.solve(model(), "simplex")),
        ("a limit as a text", "cost_limit", lambda: op.solve(model(), cost_limit="low")),
        (
            "one constraint's engine for two",
            "engine",
            lambda: op.solve(model(costs=[C, C], cost_limit=[1.0, 1.0]), engine="parametric"),
        ),
        (
            "a frontier of two constraints",
            "constraint",
            lambda: op.frontier(model(costs=[C, C], cost_limit=[1.0, 1.0])),
        ),
        ("a policy [S, A] to evaluate", "policy", lambda: op.evaluate(SAFE[0], C, P, MU)),
        (
            "actions instead of a policy",
            "policy_from_actions",
            lambda: op.evaluate(np.zeros((H, S), int), np.tile(C, (H, 1, 1)), P, MU),
        ),
        (
            "an action that does not exist",
            "actions",
            lambda: op.policy_from_actions([0, 1, 2, 0], A, horizon=H),
        ),
        ("a plan instead of its policy", "policy", lambda: op.evaluate(op.solve(model()), C, P, MU)),
        ("the curve beyond its least cost", "limit", lambda: op.frontier(model()).value_at(0.1)),
    ],
    "learners": [
        ("a limit as a text", "cost_limit", lambda: op.SafetyMargin("5", 1.0)),
        (
            "a safe cost above the limit",
            "safe cost",
            lambda: op.SafetyMargin(cost_limit=1.0, safe_cost=2.0),
        ),
        ("a number as the baseline", "baseline", lambda: mix(baseline=0.5)),
        ("a policy as the baseline", "baseline", lambda: mix(baseline=SAFE)),
        (
            "a policy of another size",
            "baseline",
            lambda: mix(baseline=op.SafeBaseline(SAFE[:, :3], MARGIN)),
        ),
        (
            "a policy whose rows sum to 2",
            "baseline",
            lambda: mix(baseline=op.SafeBaseline(2 * SAFE, MARGIN)),
        ),
        ("policy and margin swapped", "policy", lambda: op.SafeBaseline(MARGIN, SAFE)),
        ("numbers in place of a margin", "margin", lambda: op.SafeBaseline(SAFE, (1.0, 0.5))),
        ("a model as the shape", "model.shape", lambda: mix(shape=model())),
        ("a shape of two", "shape", lambda: mix(shape=(H, S))),
        ("delta of 5 (per cent)", "failure_probability", lambda: mix(failure_probability=5)),
        ("a float as the rule", "confidence", lambda: lp(confidence=0.02)),
        ("True as what is known", "knowledge", lambda: mix(knowledge=True)),
        (
            "no number of episodes",
            "num_episodes",
            lambda: op.OptPessLP(shape=(H, S, A), initial=MU, baseline=BASELINE),
        ),
        ("10 million as a float", "num_episodes", lambda: lp(num_episodes=1e7)),
        ("a baseline where a margin belongs", "margin", lambda: dual(margin=BASELINE)),
        ("far fewer episodes than the theorem needs", "episodes", lambda: dual()),
    ],
    "observe": [
        ("an action of probability 0", "actions", lambda: observe(lp(), actions=[1, 0, 0])),
        ("a first state of probability 0", "states", lambda: observe(states=[3, 1, 2])),
        ("a reward of 50", "rewards", lambda: observe(rewards=[0.5, 50.0, 0.5])),
        ("a cost of -3", "costs", lambda: observe(costs=[0.2, -3.0, 0.2])),
        (
            "an episode that is too short",
            "states",
            lambda: observe(states=[0, 1], actions=[0, 0], rewards=[0.5] * 2, costs=[0.2] * 2),
        ),
        ("a state that does not exist", "states", lambda: observe(states=[0, 4, 2])),
        (
            "observed before it was planned",
            "next_policy",
            lambda: mix().observe([0] * 3, [0] * 3, [0] * 3, [0] * 3),
        ),
        ("planned twice", "observe", lambda: started().next_policy()),
        ("a step after the last one", "step", lambda: mix().next_policy().action(3, 0)),
    ],
    "runs": [
        ("the same replicate twice", "replicates", lambda: simulate(replicates=[0, 0])),
        ("learner and model swapped", "model", lambda: op.simulate(mix(), model(), episodes=10)),
        ("no number of episodes for a mix", "episodes", lambda: simulate(episodes=None)),
        ("a model of another size", "learner", lambda: simulate(model=op.zoo.pair())),
        ("a model with another limit", "limit", lambda: simulate(model=model(cost_limit=2.0))),
        (
            "a baseline that is not safe",
            "baseline",
            lambda: simulate(
                model=model(costs=[[0.9, 0.1]] * S), learner=lp(num_episodes=50), episodes=None
            ),
        ),
        ("a list of learners to compare", "learners", lambda: op.compare(model(), [mix()], episodes=5)),
        ("a run joined with itself", "replicate", lambda: op.Run.concat([simulate()] * 2)),
        ("a curve that does not exist", "of", lambda: simulate().growth_exponent(of="regret")),
        ("a learner in the middle of an episode", "observe", lambda: simulate(learner=started())),
        (
            "a number where learners are expected",
            "learners",
            lambda: op.compare(model(), 0.5, episodes=5),
        ),
        (
            "a forecast in the middle of an episode",
            "observe",
            lambda: op.forecast(model(), started(lp())),
        ),
        ("a frame without pandas", "pip install pandas", lambda: without("pandas", simulate().to_frame)),
    ],
    "environments": [
        ("a class, not an object of it", "env", lambda: drive(Walk)),
        (
            "an environment without step",
            "step",
            lambda: drive(type("Half", (), dict(num_states=4, num_actions=2, reset=lambda self: 0))()),
        ),
        ("a step without a cost", "cost", lambda: drive(Walk((1, 0.5, False, False, {})))),
        (
            "truncated before the horizon",
            "truncated",
            lambda: drive(Walk((1, 0.5, False, True, {"cost": 0.0}))),
        ),
        (
            "a learner without the absorbing end",
            "sizes",
            lambda: drive(Walk((1, 0.5, 0.0, True)), learner=mix()),
        ),
        ("a reward of -1", "env.step", lambda: drive(Walk((1, -1.0, 0.0, False)))),
        (
            "tables of an environment without any",
            "tables",
            lambda: op.environments.from_gymnasium(
                gymnasium.make("Blackjack-v1"), cost=lambda *_: 0.0, horizon=5, cost_limit=1.0
            ),
        ),
        (
            "a continuous environment",
            "observation_space",
            lambda: op.environments.sizes(gymnasium.make("CartPole-v1"), horizon=5),
        ),
        ("a state that does not exist", "state", lambda: drive(Walk((9, 0.5, 0.0, False)))),
        (
            "two costs for one limit",
            "cost",
            lambda: drive(Walk((1, 0.5, False, False, {"costs": [0.0, 1.0]}))),
        ),
        (
            "an end that earns less than the range allows",
            "contain 0",
            lambda: drive(Walk((1, 2.0, 0.0, True)), reward_range=(1, 3)),
        ),
        (
            "another limit than the environment states",
            "cost_limit",
            lambda: drive(Walk(cost_limit=0.5)),
        ),
        (
            "a safe policy that costs 3 and not 0.5, played 2,000 times",
            "baseline",
            lambda: drive(Walk((1, 0.5, 1.0, False)), episodes=2000),
        ),
    ],
    "files": [
        ("a model that is not there", "nowhere.npz", lambda: op.CMDP.load("nowhere.npz")),
        (
            "a learner read as a model",
            "op.load_learner",
            lambda: op.CMDP.load(stored("a.npz", mix().save)),
        ),
        ("a text read as a learner", "notes.txt", lambda: op.load_learner(text_file("notes.txt"))),
        ("a damaged learner", "damaged.npz", lambda: op.load_learner(damaged("damaged.npz"))),
        ("a log in a folder that is not there", "nowhere", lambda: drive(log="nowhere/log.csv")),
    ],
    "units": [
        ("a range the wrong way round", "reward_range", lambda: model(reward_range=(1, 0))),
        ("one number as a range", "cost_range", lambda: model(cost_range=5)),
        (
            "a reward outside of its range",
            "rewards",
            lambda: model(rewards=R * 100, reward_range=(0, 10)),
        ),
        (
            "a learner in other units than the model",
            "range",
            lambda: simulate(model=model(rewards=R * 100, reward_range=(0, 50))),
        ),
        (
            "a limit that no episode reaches",
            "cost_limit",
            lambda: mix(cost_range=(0, 0.1), baseline=op.SafeBaseline(SAFE, op.SafetyMargin(1.0, 0.1))),
        ),
        (
            "a cost in other units than the learner's",
            "cost_range",
            lambda: observe(mix(cost_range=(0, 0.5)), costs=[0.2, 0.9, 0.2]),
        ),
    ],
    "masks": [
        ("a state without actions", "actions", lambda: model(actions=np.zeros((S, A), bool))),
        ("a mask the other way round", "actions", lambda: model(actions=MASK.T)),
        ("a safe policy with a missing action", "baseline", lambda: mix(actions=MASK[:, ::-1])),
        ("a mask of numbers", "actions", lambda: model(actions=[[2, 1]] * S)),
        (
            "a missing action that was played",
            "actions",
            lambda: observe(mix(actions=MASK), states=[0, 1, 2], actions=[0, 1, 0]),
        ),
        (
            "an environment with missing actions that the learner does not know of",
            "actions",
            lambda: drive(op.environments.as_gymnasium(model(actions=MASK)), learner=mix()),
        ),
    ],
}


# What people may expect of Python itself.
OWN = (op.OptPessError, FileNotFoundError, IsADirectoryError, ImportError)


def tried(call):
    """What was said: the kind, and the message."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            call()
        except OWN as error:
            return ("raw" if str(error).startswith("[Errno") else "clear"), str(error)
        except TypeError as error:
            text = str(error)
            keyword = "keyword" in text and "argument" in text
            return ("clear" if keyword else "raw"), f"TypeError: {text}"
        except Exception as error:
            return "raw", f"{type(error).__name__}: {error}"
    if seen:
        return "clear", str(seen[0].message)
    return "swallowed", ""


def main():
    total = sum(map(len, MISTAKES.values()))
    counts = dict.fromkeys(("clear", "raw", "swallowed", "unclear"), 0)
    for group, rows in MISTAKES.items():
        good = 0
        for name, wanted, call in rows:
            kind, message = tried(call)
            # One line, and it names what to change.
            if kind == "clear" and (wanted not in message or "\n" in message):
                kind = "unclear"
            counts[kind] += 1
            good += kind == "clear"
            if kind != "clear":
                print(f"{kind}: {group}: {name}: {message!r}")
            elif "-v" in sys.argv:
                print(f"{group}: {name}\n    {message}")
        print(f"{group}: {good} of {len(rows)} refused clearly")
    bad = ", ".join(f"{counts[kind]} {kind}" for kind in ("raw", "swallowed", "unclear"))
    print(f"{counts['clear']} of {total} mistakes are refused clearly; {bad}")
    assert total == 96, total
    assert counts["clear"] == total, (
        f"{total - counts['clear']} of {total} mistakes are not refused clearly"
    )


if __name__ == "__main__":
    main()
