"""The six algorithms of the paper's Table 1 against NumPy versions of themselves, in one run.

The NumPy versions are written the way one would for a paper: whole steps at a time, no Python loop over
states, only the rows an episode touched are updated, and linear programs go to HiGHS through highspy,
with the pattern built once and each program started from the basis of the last. They do not judge their
policies; ours are judged exactly against the truth in the time that is measured. Both sides start from
the same few thousand episodes, fed beforehand, and their first plans are compared. Time is processor
time, one thread each, taken in turns; the ratio is the peer's median over ours.

Usage: peers.py [--rounds N] [--no-record]
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

from evaluate import RECORD, facts  # first: it sets the number of threads

# isort: split
import highspy
import numpy as np
import optpess as op
from optpess.highs import new_solver

MODEL = op.zoo.media()  # S,A,H = 10,2,10
MARGIN = op.SafetyMargin(cost_limit=5.0, safe_cost=1.0)
H, S, A = MODEL.shape
EPISODES, DELTA, FACTOR = 100_000, 0.05, 0.01
FED, OURS = 3_000, 4_000  # episodes before the clock starts, and ours while it runs
BAR = 20.0
LIMIT, GAP = MARGIN.cost_limit, MARGIN.cost_limit - MARGIN.safe_cost
RHO = H / GAP
LOG = float(np.log(6 * S**2 * A * H * EPISODES / DELTA))
TRUTH = np.stack([MODEL.transitions.to_array()] * H)
Array = Any


class Peer:
    """Counts, averages and bonuses in NumPy; what differs is `plan` and `learn`."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.n = np.zeros((H, S, A))
        self.counts = np.zeros((H, S, A, S))
        self.sums = np.zeros((2, H, S, A))
        self.P, self.averages = np.zeros((H, S, A, S)), np.zeros((2, H, S, A))
        self.multiplier = 0.0

    def observe(self, states: Array, actions: Array, rewards: Array, costs: Array) -> None:
        h = np.arange(H)
        at = (h, states[:H], actions)
        self.n[at] += 1
        self.counts[h[:-1], states[: H - 1], actions[:-1], states[1:H]] += 1
        self.sums[0][at] += rewards
        self.sums[1][at] += costs
        n = self.n[at]
        self.P[at] = self.counts[at] / n[:, None]
        self.averages[0][at], self.averages[1][at] = self.sums[0][at] / n, self.sums[1][at] / n

    def observation(self) -> Array:
        return FACTOR * np.sqrt(LOG / np.maximum(self.n, 1))

    def successors(self) -> Array:
        n = np.maximum(self.n, 1)[..., None]
        return FACTOR * (np.sqrt(4 * self.P * (1 - self.P) * LOG / n) + 14 * LOG / (3 * n))

    def bonus_signals(self) -> tuple[Array, Array]:
        bonus = self.observation()
        bonus[:-1] += H * self.successors()[:-1].sum(axis=-1)
        return self.averages[0] + bonus, self.averages[1] - bonus

    def episode(self) -> None:
        policy = self.plan()
        u = self.generator.random((H, 4))
        states, actions = np.zeros(H, int), np.zeros(H, int)
        state = 0  # media starts empty
        for h in range(H):
            states[h] = state
            actions[h] = min(int(np.searchsorted(np.cumsum(policy[h, state]), u[h, 0])), A - 1)
            following = np.cumsum(TRUTH[h, state, actions[h]])
            state = min(int(np.searchsorted(following, u[h, 1])), S - 1)
        at = (np.arange(H), states, actions)
        rewards, costs = u[:, 2] < MODEL.rewards[at], u[:, 3] < MODEL.costs[0][at]
        self.observe(states, actions, rewards, costs)
        self.learn()

    def plan(self) -> Array:
        raise NotImplementedError

    def learn(self) -> None:
        pass


class Program:
    """A linear program of fixed pattern, solved again and again from its last basis."""

    def __init__(self, rows: Array, columns: Array, bounds: tuple[Array, Array], width: int) -> None:
        self.order = np.lexsort((rows, columns))
        self.rows = rows[self.order].astype(np.int32)
        self.starts = np.searchsorted(columns[self.order], np.arange(width + 1)).astype(np.int32)
        self.bounds, self.width, self.basis = bounds, width, None
        _, self.solver = new_solver()

    def solve(self, objective: Array, entries: Array) -> tuple[Array, float] | None:
        self.solver.passModel(
            self.width,
            len(self.bounds[0]),
            len(entries),
            int(highspy.MatrixFormat.kColwise),
            int(highspy.ObjSense.kMaximize),
            0.0,
            objective,
            np.zeros(self.width),
            np.full(self.width, highspy.kHighsInf),
            *self.bounds,
            self.starts,
            self.rows,
            entries[self.order],
            np.zeros(self.width, dtype=np.int32),
        )
        if self.basis is not None:
            self.solver.setBasis(self.basis)
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self.basis = None
            return None
        self.basis = self.solver.getBasis()
        found = np.asarray(self.solver.getSolution().col_value)
        return found, self.solver.getInfo().objective_function_value


def read_off(occupancy: Array) -> Array:
    total = occupancy.sum(axis=-1, keepdims=True)
    return np.where(total > 0, occupancy / np.where(total > 0, total, 1), 1 / A)


FLOWS = np.r_[np.asarray(MODEL.initial), np.zeros((H - 1) * S)]
Q = np.arange(H * S * A)
OWNER, SUCCESSOR = np.divmod(np.arange((H - 1) * S * A * S), S)
INTO = (OWNER // (S * A) + 1) * S + SUCCESSOR


class OccupancyPeer(Peer):
    """An ordinary occupancy program over q."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        rows = np.r_[Q // A, INTO, np.full(Q.size, H * S)]
        bounds = (np.r_[FLOWS, -highspy.kHighsInf], np.r_[FLOWS, LIMIT])
        self.program = Program(rows, np.r_[Q, OWNER, Q], bounds, Q.size)

    def best(self, reward: Array, cost: Array, P: Array) -> Array | None:
        entries = np.r_[np.ones(Q.size), -P[:-1].ravel(), cost.ravel()]
        found = self.program.solve(reward.ravel(), entries)
        if found is None:
            return None
        self.value = found[1]
        return read_off(found[0].reshape(H, S, A))


class Bonus(OccupancyPeer):
    def plan(self) -> Array:
        policy = self.best(*self.bonus_signals(), self.P)
        assert policy is not None
        return policy


class Cucrl(OccupancyPeer):
    def plan(self) -> Array:
        bonus = self.observation()
        policy = self.best(self.averages[0] + bonus, self.averages[1] + bonus, TRUTH)
        return BASELINE if policy is None else policy


class Extended(Peer):
    """Boxes around P-hat."""

    def boxes(self) -> tuple[Array, Array]:
        radius = self.successors()
        radius[self.n == 0] = np.maximum(radius[self.n == 0], 1)
        return np.maximum(self.P - radius, 0)[:-1], np.minimum(self.P + radius, 1)[:-1]

    def signals(self) -> tuple[Array, Array]:
        bonus = self.observation()
        return self.averages[0] + bonus, self.averages[1] - bonus


class OptCmdp(Extended):
    """The extended program over (q, z)."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        z, box = Q.size + np.arange(OWNER.size), np.arange(OWNER.size)
        first = H * S  # q = sum z, then lower ends, upper ends, cost
        low, high = first + (H - 1) * S * A, first + (H - 1) * S * A + OWNER.size
        last = high + OWNER.size
        rows = [Q // A, INTO, first + Q[: (H - 1) * S * A], first + OWNER]
        rows += [low + box, low + box, high + box, high + box, np.full(Q.size, last)]
        columns = [Q, z, Q[: (H - 1) * S * A], z, z, OWNER, z, OWNER, Q]
        zeros, infinite = np.zeros(OWNER.size), np.full(OWNER.size, highspy.kHighsInf)
        start = np.r_[FLOWS, np.zeros((H - 1) * S * A)]
        bounds = (
            np.r_[start, zeros, -infinite, -highspy.kHighsInf],
            np.r_[start, infinite, zeros, LIMIT],
        )
        self.program = Program(np.concatenate(rows), np.concatenate(columns), bounds, Q.size + z.size)

    def plan(self) -> Array:
        reward, cost = self.signals()
        lower, upper = self.boxes()
        one = np.ones(OWNER.size)
        entries = np.r_[np.ones(Q.size), -one, -np.ones((H - 1) * S * A), one]
        entries = np.r_[entries, one, -lower.ravel(), one, -upper.ravel(), cost.ravel()]
        found = self.program.solve(np.r_[reward.ravel(), np.zeros(OWNER.size)], entries)
        assert found is not None
        self.value = found[1]
        return read_off(found[0][: Q.size].reshape(H, S, A))


class OptDual(Extended):
    def plan(self) -> Array:
        reward, cost = self.signals()
        lower, upper = self.boxes()
        missing = 1 - lower.sum(axis=-1, keepdims=True)
        priced = reward - self.multiplier * cost
        policy, kernel = np.zeros((H, S, A)), np.zeros((H, S, S))
        V, every = np.zeros(S), np.arange(S)
        for h in reversed(range(H)):
            q = priced[h].copy()
            if h + 1 < H:
                order = np.argsort(-V, kind="stable")
                room = (upper[h] - lower[h])[..., order]
                before = np.cumsum(room, axis=-1) - room
                given = np.clip(missing[h] - before, 0, room)
                rows = lower[h].copy()
                rows[..., order] += given
                q += rows @ V
            chosen = q.argmax(axis=1)
            V = q[every, chosen]
            policy[h, every, chosen] = 1
            if h + 1 < H:
                kernel[h] = rows[every, chosen]
        V_c = np.zeros(S)
        for h in reversed(range(H)):
            V_c = (policy[h] * cost[h]).sum(axis=1) + kernel[h] @ V_c
        self.cost = float(MODEL.initial @ V_c)
        self.value = float(MODEL.initial @ V) + self.multiplier * self.cost
        return policy

    def learn(self) -> None:
        step = RHO / (np.sqrt(EPISODES) * H)
        self.multiplier = max(0.0, self.multiplier + step * (self.cost - LIMIT))


class Mirror(Peer):
    """Mirror ascent, on logarithms."""

    step = float(np.sqrt(2 * np.log(A) / EPISODES) / (H * (1 + RHO)))
    dual, cap, share = float(RHO / (np.sqrt(EPISODES) * H)), RHO, 0.0

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.weights = np.zeros((H, S, A))

    def estimates(self) -> tuple[Array, Array, Array]:
        return *self.bonus_signals(), self.P

    def plan(self) -> Array:
        policy = np.exp(self.weights)
        policy /= policy.sum(axis=-1, keepdims=True)
        *signals, P = self.estimates()
        self.qualities = np.zeros((2, H, S, A))
        starts = []
        for which, signal in enumerate(signals):
            V = np.zeros(S)
            for h in reversed(range(H)):
                q = signal[h] + P[h] @ V if h + 1 < H else signal[h]
                self.qualities[which, h] = np.clip(q, 0, H - h)
                V = (policy[h] * self.qualities[which, h]).sum(axis=1)
            starts.append(float(MODEL.initial @ V))
        self.value, self.cost = starts
        return policy

    def learn(self) -> None:
        if self.share:
            policy = np.exp(self.weights)
            policy /= policy.sum(axis=-1, keepdims=True)
            self.weights = np.log((1 - self.share) * policy + self.share / A)
        self.weights += self.step * (self.qualities[0] - self.multiplier * self.qualities[1])
        self.weights -= self.weights.max(axis=-1, keepdims=True)
        moved = self.multiplier + self.dual * (self.cost - LIMIT)
        self.multiplier = float(np.clip(moved, 0, self.cap))


class Opdop(Mirror):
    step = float(np.sqrt(np.log(A) / EPISODES) / H**2)
    dual, cap, share = float(1 / np.sqrt(EPISODES)), 2 * RHO, 1 / EPISODES

    def estimates(self) -> tuple[Array, Array, Array]:
        kept = self.n / (self.n + 1)
        bonus = FACTOR * (1 + H * np.sqrt(S)) * np.sqrt(LOG / (self.n + 1))
        reward, cost = kept * self.averages[0] + bonus, kept * self.averages[1] - bonus
        return reward, cost, kept[..., None] * self.P


BASELINE = op.solve(MODEL, cost_limit=MARGIN.safe_cost).policy
TOLD = {
    "shape": MODEL.shape,
    "initial": MODEL.initial,
    "num_episodes": EPISODES,
    "failure_probability": DELTA,
    "confidence": op.Scaled(FACTOR),
}
SAFE = {"baseline": op.SafeBaseline(BASELINE, MARGIN)}
# name: ours, theirs, and how many of their episodes are timed
CASES: dict[str, tuple[Any, type[Peer], int]] = {
    "OptCMDP": (op.OptCMDP(margin=MARGIN, **TOLD), OptCmdp, 6),
    "OptCMDP-bonus": (op.OptCMDPBonus(margin=MARGIN, **TOLD), Bonus, 60),
    "OptDual-CMDP": (op.OptDualCMDP(margin=MARGIN, **TOLD), OptDual, 150),
    "OptPrimalDual-CMDP": (op.OptPrimalDualCMDP(margin=MARGIN, **TOLD), Mirror, 150),
    "OPDOP": (op.OPDOP(margin=MARGIN, **TOLD), Opdop, 150),
    "C-UCRL": (op.CUCRL(transitions=MODEL.transitions, **SAFE, **TOLD), Cucrl, 60),
}


def compared(name: str, rounds: int) -> dict[str, object]:
    learner, kind, episodes = CASES[name]
    wide = op.OPDOP(margin=MARGIN, **TOLD)  # near uniform, so that most of the problem is seen
    trace = op.simulate(MODEL, wide, episodes=FED, trace=True, seed=7, progress=False).traces[0]
    peer = kind(seed=1)
    for number in range(FED):
        seen = (trace.states[number], trace.actions[number], trace.rewards[number], trace.costs[number])
        learner.next_policy()
        learner.observe(*seen)
        if isinstance(peer, Mirror | OptDual):
            peer.plan()
        peer.observe(*seen)
        peer.learn()
    first = learner.__copy__().next_policy()
    peer.plan()
    apart = abs(first.optimistic_reward / peer.value - 1.0)
    if kind is OptDual:
        apart = max(apart, abs(learner.multiplier - peer.multiplier))
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        start = time.process_time()
        op.simulate(MODEL, learner, episodes=OURS, seed=1, threads=1, progress=False)
        times[0].append((time.process_time() - start) / OURS * 1e6)
        start = time.process_time()
        for _ in range(episodes):
            peer.episode()
        times[1].append((time.process_time() - start) / episodes * 1e6)
    own, theirs = (statistics.median(measured) for measured in times)
    return {
        "learner": name,
        "ours_us": round(own, 2),
        "numpy_us": round(theirs, 1),
        "ratio": round(theirs / own, 1),
        "first_plans_apart": float(apart),
    }


def described(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| learner | optpess, us an episode | NumPy (and HiGHS), us an episode | ratio | target "
        "| first plans apart, relative |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        missed = "" if row["ratio"] >= BAR else " (missed)"
        lines.append(
            f"| {row['learner']} | {row['ours_us']:,} | {row['numpy_us']:,} | {row['ratio']:,}{missed} "
            f"| {BAR:.0f} | {row['first_plans_apart']:.0e} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    arguments = parser.parse_args()
    rows = []
    for name in CASES:
        rows.append(compared(name, arguments.rounds))
        print(rows[-1], flush=True)
    print(described(rows))
    if arguments.no_record:
        return
    machine = facts()
    record = {"machine": machine, "rounds": arguments.rounds, "results": rows}
    (RECORD / "peers.json").write_text(json.dumps(record, indent=1) + "\n")
    listed = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    (RECORD / "peers.md").write_text(
        "# The algorithms of Table 1 against NumPy\n\nWritten by `benches/python/peers.py`, which says "
        "what is compared, on the media problem (S,A,H = 10,2,10) with radii scaled by 0.01. Medians of "
        f"processor time in one run, one thread.\n\n{listed}\n\n{described(rows)}\n"
    )


if __name__ == "__main__":
    main()
