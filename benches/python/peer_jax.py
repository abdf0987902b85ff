"""OptPess-PrimalDual in JAX: whole runs inside one compiled loop, 64-bit, one thread.

The rules are those of `peer_numba.py`. Random numbers are drawn for all episodes at once, beforehand but
within the timed call. JAX has no cheap branch and no scalar loop, which is what an episode is made of.
"""

from __future__ import annotations

import os
from functools import partial

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)


def evaluated(P: jax.Array, signal: jax.Array, actions: jax.Array, initial: jax.Array) -> jax.Array:
    """V_1(mu; signal, P) of integer actions [H, S]."""
    H, S, _ = signal.shape
    states, values = jnp.arange(S), jnp.zeros(S)
    for h in range(H - 1, -1, -1):
        values = signal[h, states, actions[h]] + P[h, states, actions[h]] @ values
    return initial @ values


def planned(P_hat: jax.Array, signal: jax.Array) -> jax.Array:
    """The actions [H, S] of backward induction."""
    H, S, _ = signal.shape
    values, actions = jnp.zeros(S), []
    for h in range(H - 1, -1, -1):
        quality = signal[h] + P_hat[h] @ values
        actions.append(quality.argmax(axis=1))
        values = quality.max(axis=1)
    return jnp.stack(actions[::-1])


@partial(jax.jit, static_argnames=("K", "delta", "episodes"))
def compiled_run(
    P: jax.Array,
    r: jax.Array,
    c: jax.Array,
    initial: jax.Array,
    limit: float,
    safe: float,
    K: int,
    delta: float,
    episodes: int,
    seed: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    H, S, A = r.shape
    Z = jnp.log(16.0 * S * S * A * H * K / delta)
    scale, small = 5.0 * H * H * (S**3 * A) ** 0.5, delta / (16.0 * S * S * A * H)
    cumulative, start = P.cumsum(axis=-1), initial.cumsum()
    uniforms = jax.random.uniform(jax.random.key(seed), (episodes, 3 * H), dtype=jnp.float64)

    def drawn(sums: jax.Array, uniform: jax.Array) -> jax.Array:
        return jnp.minimum((sums <= uniform).sum(), S - 1)

    def episode(index: jax.Array, carry: tuple) -> tuple:
        multiplier, sums, counts, tilde, P_hat, played, truth, totals = carry
        k = index + 1.0
        log = jnp.log(k / small)
        price = multiplier / ((limit - safe) * H * jnp.sqrt(k))
        actions = planned(P_hat, tilde[0] - price * tilde[1])
        optimistic = evaluated(P_hat, tilde[1], actions, initial)
        truth = jax.lax.cond(
            (actions != played).any(),
            lambda: jnp.stack([evaluated(P, g, actions, initial) for g in (r, c)]),
            lambda: truth,
        )
        draws = uniforms[index]
        state = drawn(start, draws[0])
        for h in range(H):
            a = actions[h, state]
            seen = jnp.stack(
                [
                    jnp.ones(()),
                    (draws[3 * h + 1] < r[h, state, a]) * 1.0,
                    (draws[3 * h + 2] < c[h, state, a]) * 1.0,
                ]
            )
            sums = sums.at[:, h, state, a].add(seen)
            n = sums[0, h, state, a]
            bonus = (1 + H * S) * jnp.sqrt(Z / n)
            both = sums[1:, h, state, a] / n + jnp.stack([bonus, -bonus])
            tilde = tilde.at[:, h, state, a].set(both)
            if h + 1 < H:
                after = drawn(cumulative[h, state, a], draws[3 * h + 3])
                counts = counts.at[h, state, a, after].add(1.0)
                P_hat = P_hat.at[h, state, a].set(counts[h, state, a] / n)
                state = after
        epsilon = scale * (log + 1.0) / jnp.sqrt(k * log)
        multiplier = jnp.maximum(0.0, multiplier + jnp.maximum(optimistic, 0.0) + epsilon - limit)
        return multiplier, sums, counts, tilde, P_hat, actions, truth, totals + truth

    first = (1 + H * S) * jnp.sqrt(Z)
    tilde = jnp.stack([jnp.full((H, S, A), first), jnp.full((H, S, A), -first)])
    tables = (jnp.zeros((3, H, S, A)), jnp.zeros((H, S, A, S)), tilde, jnp.zeros((H, S, A, S)))
    played = jnp.full((H, S), -1)
    carry = (jnp.zeros(()), *tables, played, jnp.zeros(2), jnp.zeros(2))
    last = jax.lax.fori_loop(0, episodes, episode, carry)
    return last[0], last[7][0], last[7][1]


def run(arrays: tuple, K: int, delta: float, episodes: int, seed: int) -> tuple[float, float, float]:
    """The last multiplier and the sums of the true rewards and costs of the deployed policies."""
    answer = compiled_run(*arrays, K, delta, episodes, seed)
    multiplier, reward, cost = (float(np.asarray(part)) for part in answer)
    return multiplier, reward, cost
