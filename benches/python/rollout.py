"""What `op.rollout` adds to the time of an environment and of a learner, an episode of 10 steps.

Loops over the same episodes take turns: the environment played by hand, the learner fed by hand, the
rollout, and a loop that does nothing. The driver is the rollout without the first two. The loop that
does nothing is added, as the rollout has one loop and they have two. Run by `make bench-rollout`.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Callable
from typing import Any

import gymnasium
import harness
import numpy as np
import optpess as op
from optpess import _core

HORIZON, EPISODES, ROUNDS, SEED = 10, 2000, 11, 7
BAR = 15_000  # nanoseconds an episode


class Tiny:
    """Two states; as little work as an environment can do."""

    num_states, num_actions = 2, 2

    def reset(self, seed=None):  # noqa: ARG002 - as environments are called
        return 0

    def step(self, action):
        return action, 0.5, 0.0, False


class Lake(gymnasium.Wrapper):
    """FrozenLake, where falling costs 1."""

    def step(self, action):
        state, reward, terminated, truncated, info = self.env.step(action)
        info["cost"] = float(terminated and reward == 0)
        return state, reward, terminated, truncated, info


class Recorded:
    """Keeps what an environment was asked and what it answered."""

    def __init__(self, env: Any) -> None:
        self._env, self.episodes = env, []
        self.observation_space = getattr(env, "observation_space", None)
        self.action_space = getattr(env, "action_space", None)
        self.num_states = getattr(env, "num_states", None)
        self.num_actions = getattr(env, "num_actions", None)

    def reset(self, seed=None):
        answer = self._env.reset() if seed is None else self._env.reset(seed=seed)
        first = answer[0] if isinstance(answer, tuple) else answer
        self.episodes.append((seed, first, []))
        return answer

    def step(self, action):
        answer = self._env.step(action)
        if len(answer) == 4:
            state, reward, cost, ended = answer
        else:
            state, reward, ended, _, info = answer
            cost = info["cost"]
        self.episodes[-1][2].append((action, reward, cost, state, ended))
        return answer


def environments() -> dict[str, Any]:
    lake = gymnasium.make("FrozenLake-v1", max_episode_steps=-1, disable_env_checker=True)
    return {"tiny, plain": Tiny(), "FrozenLake": Lake(lake)}


def learners(env: Any) -> dict[str, op.Learner]:
    shape = op.environments.sizes(env, HORIZON)
    still = op.policy_from_actions(
        np.full(shape[:2], shape.num_actions - 1), num_actions=shape.num_actions
    )
    shared = {
        "shape": shape,
        "initial": 0,
        "baseline": op.SafeBaseline(still, op.SafetyMargin(cost_limit=0.5, safe_cost=0.0)),
    }
    return {
        "OptPessMix": op.OptPessMix(**shared, knowledge=op.Knowledge(stationary=True)),
        "AlwaysBaseline": op.AlwaysBaseline(**shared, num_episodes=10 * EPISODES),
    }


def rolled(learner: op.Learner, env: Any, seed: int | None) -> None:
    if seed is None:
        env.reset(seed=SEED)  # so that every turn has the same episodes
    op.rollout(copy.copy(learner), env, episodes=EPISODES, seed=seed, progress=False)


def played_by_hand(env: Any, episodes: list[Any], seeded: bool) -> None:
    reset, step = env.reset, env.step
    if not seeded:
        reset(seed=SEED)
    for seed, _, steps in episodes:
        reset(seed=seed) if seeded else reset()
        for action, *_ in steps:
            step(action)


def fed_by_hand(learner: op.Learner, episodes: list[Any]) -> None:
    inner = learner._inner.copy()
    begin, take, end, finish = (
        inner.begin_episode,
        inner.take_step,
        inner.end_early,
        inner.finish_episode,
    )
    for _, first, steps in episodes:
        begin(first)
        for _, reward, cost, state, ended in steps:
            end(reward, cost) if ended else take(reward, cost, state)
        finish()


def loops_alone(episodes: list[Any]) -> None:
    for _, _, steps in episodes:
        for _ in steps:
            pass


def arrays_of(episodes: list[Any], num_states: int) -> list[tuple[np.ndarray, ...]]:
    """The episodes as `observe` takes them, continued in the absorbing end; actions are drawn there."""
    made = []
    for _, first, steps in episodes:
        left = HORIZON - len(steps)
        states = [first, *(step[3] for step in steps[:-1])] + [num_states - 1] * left
        rewards = [step[1] for step in steps] + [0.0] * left
        costs = [step[2] for step in steps] + [0.0] * left
        made.append((np.array(states), np.array(rewards, float), np.array(costs, float)))
    return made


def verbs(learner: op.Learner, arrays: list[tuple[np.ndarray, ...]]) -> None:
    """`next_policy`, an action for each step, `observe`: what a person would write."""
    own = copy.copy(learner)
    for states, rewards, costs in arrays:
        deployment = own.next_policy()
        actions = [deployment.action(step, state) for step, state in enumerate(states.tolist())]
        own.observe(states, actions, rewards, costs)


def measured(env: Any, learner: op.Learner, seeded: bool, rounds: int) -> dict[str, float]:
    """Nanoseconds an episode."""
    seed = SEED if seeded else None
    record = Recorded(env)
    rolled(learner, record, seed)
    episodes = record.episodes if seeded else record.episodes[1:]
    if seeded:
        assert [each[0] for each in episodes] == [_core.episode_seed(SEED, k) for k in range(EPISODES)]
    arrays = arrays_of(episodes, learner.shape.num_states)
    turns: dict[str, Callable[[], None]] = {
        "environment": lambda: played_by_hand(env, episodes, seeded),
        "learner": lambda: fed_by_hand(learner, episodes),
        "loops": lambda: loops_alone(episodes),
        "rollout": lambda: rolled(learner, env, seed),
        "verbs": lambda: verbs(learner, arrays),
    }
    times = harness.in_turns({name: (call, EPISODES) for name, call in turns.items()}, rounds)
    by_hand = times["environment"] + times["learner"] - times["loops"]
    return times | {
        "driver": times["rollout"] - by_hand,
        "steps": float(np.mean([len(e[2]) for e in episodes])),
    }


def table(rows: list[dict[str, Any]]) -> str:
    names = [
        "environment",
        "learner",
        "seeded",
        "steps",
        "alone",
        "fed by hand",
        "rollout",
        "driver",
        "two verbs",
    ]
    lines = ["| " + " | ".join(names) + " |", "| --- " * len(names) + "|"]
    for row in rows:
        missed = " (missed)" if row["driver"] > BAR else ""
        cells = [row["name"], row["kind"], "yes" if row["seeded"] else "no", f"{row['steps']:.1f}"]
        cells += [harness.duration(row[key]) for key in ("environment", "learner", "rollout")]
        cells += [harness.duration(row["driver"]) + missed, harness.duration(row["verbs"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--no-record", action="store_true")
    chosen = parser.parse_args()
    rows = []
    for name, env in environments().items():
        for kind, learner in learners(env).items():
            for seeded in (True, False):
                found = measured(env, learner, seeded, chosen.rounds)
                rows.append({"name": name, "kind": kind, "seeded": seeded} | found)
    facts = harness.facts()
    text = f"""# What `op.rollout` adds to an episode of {HORIZON} steps

Made by `make bench-rollout`: medians of processor time over {chosen.rounds} rounds of {EPISODES}
episodes, in turns, in one process.

- *alone*: the environment, with the same seeds and actions. A seed costs what making a generator takes.
- *fed by hand*: the learner's compiled calls, with the same answers.
- *driver*: the rollout without these two, where their two loops count once. The bar: {BAR // 1000} us.
- *two verbs*, for comparison: the learner through `next_policy`, `action` at each step, and `observe`.

{table(rows)}

{harness.listed(facts)}
"""
    print(text)
    if not chosen.no_record:
        harness.write(harness.RECORD / "rollout.md", text)
        record = {"facts": facts, "bar": BAR, "rows": rows}
        harness.write(harness.RECORD / "rollout.json", json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
