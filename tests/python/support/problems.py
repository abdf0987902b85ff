"""Random problems for property tests: dense and sparse, rows that keep, lose or have no mass."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import optpess as op
from hypothesis import strategies as st
from scipy import sparse

from support import healthy

FORMS = ("array", "Transitions", "sparse", "csr")
MASS = ("kept", "lost", "absent")


@dataclass
class Problem:
    """A policy, a signal and a kernel; `kernel` is `P` in the form handed to the library."""

    policy: np.ndarray  # [H, S, A]
    g: np.ndarray  # [H, S, A]
    P: np.ndarray  # [H, S, A, S], dense, whatever the form
    mu: np.ndarray  # [S]
    kernel: Any
    generator: np.random.Generator

    @property
    def shape(self):
        return self.g.shape

    def another_policy(self):
        return distributions(self.generator, self.shape)

    def another_model(self, form="array", mass="lost"):
        P = rows(self.generator, self.P.shape, mass)
        return self.generator.normal(size=self.shape), P, in_form(P, form)


def distributions(generator, shape):
    """Distributions over the last axis, about a third of them certain."""
    drawn = generator.dirichlet(np.ones(shape[-1]), size=shape[:-1])
    certain = np.eye(shape[-1])[generator.integers(shape[-1], size=shape[:-1])]
    return np.where(generator.random((*shape[:-1], 1)) < 1 / 3, certain, drawn)


def rows(generator, shape, mass):
    """Rows over successors: full, with mass lost from each, or with some rows all zero."""
    drawn = distributions(generator, shape)
    drawn *= generator.random(shape) < 0.7  # exact zeros, so that the sparse form differs
    total = drawn.sum(axis=-1, keepdims=True)
    drawn = np.where(total > 0, drawn / np.where(total > 0, total, 1), np.eye(shape[-1])[0])
    if mass != "kept":
        drawn *= generator.random((*shape[:-1], 1))
    if mass == "absent":
        drawn *= generator.random((*shape[:-1], 1)) < 0.5
    return drawn


def in_form(P, form):
    """Dense `P`, [H, S, A, S] or [S, A, S], as one of `FORMS`."""
    if form == "array":
        return P
    if form == "Transitions":
        return op.Transitions(P)
    if form == "sparse":
        return healthy.sparse(P)
    return sparse.csr_matrix(P.reshape(-1, P.shape[-1]))


@st.composite
def problems(draw, mass=MASS, forms=FORMS):
    """Problems of up to 8 states, 4 actions and 8 steps; a third of the kernels stationary."""
    horizon, num_states, num_actions = draw(
        st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 4))
    )
    form, kept = draw(st.sampled_from(forms)), draw(st.sampled_from(mass))
    is_stationary = draw(st.sampled_from([False, False, True]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = (horizon, num_states, num_actions)
    P = rows(generator, (*shape[is_stationary:], num_states), kept)
    kernel = in_form(P, form)
    scale = 10.0 ** generator.integers(-3, 4)
    return Problem(
        policy=distributions(generator, shape),
        g=generator.normal(size=shape) * scale,
        P=np.broadcast_to(P, (*shape, num_states)),
        mu=distributions(generator, (num_states,)),
        kernel=kernel,
        generator=generator,
    )
