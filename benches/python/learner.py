"""OptPess-PrimalDual, simulated and judged, against the same algorithm compiled by numba, in one run.

Both sides have one thread, the same dense random problem, the theorem's constants, observations of 0
or 1, updates of the rows an episode touched and no others, and exact judging of a policy only when it
differs from the last one. The peer's layout and random numbers are its own (numba's generator is
cheaper than ours), and it may reorder sums, which we may not. What both learn is compared through the
last multiplier, which hardly depends on the draws. Time is processor time, taken in turns; the ratio is
the peer's median over ours.

Usage: learner.py [--rounds N] [--no-record]; needs `pip install --group bench`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time

import numba
import numpy as np
import optpess as op
from evaluate import RECORD, facts

SIZES = {(3, 2, 3): 200_000, (10, 4, 10): 20_000, (20, 4, 10): 8_000}  # S, A, H: episodes
BARS = {(3, 2, 3): 3.0, (10, 4, 10): 4.0, (20, 4, 10): 4.0}
DELTA = 0.05
# Lets the compiler vectorise sums; infinities keep their meaning.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}


@numba.njit(fastmath=RELAXED)
def drawn(row: np.ndarray) -> int:
    uniform = np.random.random()  # noqa: NPY002 - the only generator numba seeds cheaply
    total = 0.0
    for outcome in range(row.size - 1):
        total += row[outcome]
        if uniform < total:
            return outcome
    return row.size - 1


@numba.njit(fastmath=RELAXED)
def value(P: np.ndarray, signal: np.ndarray, actions: np.ndarray, initial: np.ndarray) -> float:
    H, S, _ = signal.shape
    following, here = np.zeros(S), np.zeros(S)
    for h in range(H - 1, -1, -1):
        for s in range(S):
            a = actions[h, s]
            total = signal[h, s, a]
            if h + 1 < H:
                for t in range(S):
                    total += P[h, s, a, t] * following[t]
            here[s] = total
        following, here = here, following
    result = 0.0
    for s in range(S):
        result += initial[s] * following[s]
    return result


@numba.njit(fastmath=RELAXED)
def peer(
    P: np.ndarray,
    r: np.ndarray,
    c: np.ndarray,
    initial: np.ndarray,
    limit: float,
    safe: float,
    K: int,
    delta: float,
    seed: int,
) -> tuple[float, float, float]:
    """Regret against 0, signed violation and the last multiplier of one run of K episodes."""
    np.random.seed(seed)  # noqa: NPY002
    H, S, A = r.shape
    visits, counts = np.zeros((H, S, A)), np.zeros((H, S, A, S))
    sums_r, sums_c, P_hat = np.zeros((H, S, A)), np.zeros((H, S, A)), np.zeros((H, S, A, S))
    Z = math.log(16.0 * S * S * A * H * K / delta)
    first = (1 + H * S) * math.sqrt(Z)
    r_tilde, c_tilde = np.full((H, S, A), first), np.full((H, S, A), -first)
    actions, played = np.zeros((H, S), np.int64), np.full((H, S), -1)
    following, here = np.zeros(S), np.zeros(S)
    multiplier, regret, violation, true_r, true_c = 0.0, 0.0, 0.0, 0.0, 0.0
    scale, small = 5.0 * H * H * math.sqrt(S**3 * A), delta / (16.0 * S * S * A * H)
    for k in range(1, K + 1):
        log = math.log(k / small)
        epsilon = scale * (log + 1.0) / math.sqrt(k * log)
        price = multiplier / ((limit - safe) * H * math.sqrt(k))
        changed = False
        for h in range(H - 1, -1, -1):
            for s in range(S):
                best, chosen = -math.inf, 0
                for a in range(A):
                    quality = r_tilde[h, s, a] - price * c_tilde[h, s, a]
                    if h + 1 < H:
                        for t in range(S):
                            quality += P_hat[h, s, a, t] * following[t]
                    if quality > best:
                        best, chosen = quality, a
                here[s], actions[h, s] = best, chosen
                if chosen != played[h, s]:
                    played[h, s], changed = chosen, True
            following, here = here, following
        optimistic = value(P_hat, c_tilde, actions, initial)
        state = drawn(initial)
        if changed:
            true_r, true_c = value(P, r, actions, initial), value(P, c, actions, initial)
        for h in range(H):
            a = actions[h, state]
            visits[h, state, a] += 1.0
            n = visits[h, state, a]
            sums_r[h, state, a] += np.random.random() < r[h, state, a]  # noqa: NPY002
            sums_c[h, state, a] += np.random.random() < c[h, state, a]  # noqa: NPY002
            bonus = (1 + H * S) * math.sqrt(Z / n)
            r_tilde[h, state, a] = sums_r[h, state, a] / n + bonus
            c_tilde[h, state, a] = sums_c[h, state, a] / n - bonus
            if h + 1 < H:
                after = drawn(P[h, state, a])
                counts[h, state, a, after] += 1.0
                for t in range(S):
                    P_hat[h, state, a, t] = counts[h, state, a, t] / n
                state = after
        multiplier = max(0.0, multiplier + max(optimistic, 0.0) + epsilon - limit)
        regret -= true_r
        violation += true_c - limit
    return regret, violation, multiplier


def problem(states: int, actions: int, horizon: int) -> tuple[op.CMDP, op.SafetyMargin, tuple]:
    """A dense random problem; its limit is half the horizon's worth of cost, its safe cost half that."""
    generator = np.random.default_rng(0)
    shape = (horizon, states, actions)
    P = generator.dirichlet(np.ones(states), size=shape)
    r, c = generator.random(shape), generator.random(shape)
    initial = np.full(states, 1.0 / states)
    limit, safe = 0.5 * horizon, 0.25 * horizon
    model = op.CMDP(P, r, c, limit, initial)
    return model, op.SafetyMargin(cost_limit=limit, safe_cost=safe), (P, r, c, initial, limit, safe)


def compared(sizes: tuple[int, int, int], episodes: int, rounds: int) -> dict[str, object]:
    model, margin, arrays = problem(*sizes)
    learner = op.OptPessPrimalDual(
        shape=model.shape, initial=model.initial, margin=margin, num_episodes=episodes
    )

    def ours() -> float:
        run = op.simulate(model, learner, seed=1, threads=1, progress=False)
        return float(np.asarray(run.multiplier).ravel()[-1])

    def theirs() -> float:
        return peer(*arrays, episodes, DELTA, 1)[2]

    ends = [ours(), theirs()]  # also compiles the peer
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for call, measured in zip((ours, theirs), times, strict=True):
            start = time.process_time()
            call()
            measured.append((time.process_time() - start) / episodes * 1e9)
    own, peers = (statistics.median(measured) for measured in times)
    return {
        "sizes": ",".join(map(str, sizes)),
        "episodes": episodes,
        "ours_ns": round(own, 1),
        "numba_ns": round(peers, 1),
        "ratio": round(peers / own, 2),
        "target": BARS[sizes],
        "multipliers_apart": abs(ends[0] / ends[1] - 1.0),
    }


def described(rows: list[dict[str, object]]) -> str:
    lines = [
        "| S,A,H | optpess, ns an episode | numba, ns an episode | ratio | target |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        verdict = "" if float(str(row["ratio"])) >= float(str(row["target"])) else " (missed)"
        lines.append(
            f"| {row['sizes']} | {row['ours_ns']} | {row['numba_ns']} "
            f"| {row['ratio']}{verdict} | {row['target']} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--no-record", action="store_true", help="leave benches/record alone")
    arguments = parser.parse_args()
    rows = [compared(sizes, episodes, arguments.rounds) for sizes, episodes in SIZES.items()]
    machine = facts() | {"numba": numba.__version__}
    print(described(rows))
    if arguments.no_record:
        return
    RECORD.mkdir(exist_ok=True)
    record = {"machine": machine, "rounds": arguments.rounds, "results": rows}
    (RECORD / "learner.json").write_text(json.dumps(record, indent=1) + "\n")
    listed = "\n".join(f"- {name}: {value}" for name, value in machine.items())
    (RECORD / "learner.md").write_text(
        "# OptPess-PrimalDual against numba\n\nWritten by `benches/python/learner.py`, which says what "
        f"is compared. Medians of processor time in one run, one thread.\n\n{listed}\n\n"
        f"{described(rows)}\n"
    )


if __name__ == "__main__":
    main()
