"""Noise: what the paper's assumption allows can be made, and nothing else."""

import math
import pickle

import optpess as op
import pytest
from support.healthy import refused

ALL = [op.Bernoulli(), op.Deterministic(), op.Gaussian(0.25), op.Uniform(0.25)]


def test_the_widest_noise_the_assumption_allows_can_be_made():
    assert op.Gaussian(math.sqrt(0.5)).sigma == math.sqrt(0.5)
    assert op.Uniform(math.sqrt(1.5)).half_width == math.sqrt(1.5)


def test_no_noise_at_all_can_be_made():
    assert op.Gaussian(0.0).sigma == op.Uniform(0).half_width == 0


@pytest.mark.parametrize("sigma", [0.7072, -0.1, math.nan, math.inf])
def test_a_normal_noise_outside_the_assumption_is_refused(sigma):
    with refused("OutOfRange", "sigma is", "[0, 0.707"):
        op.Gaussian(sigma)


@pytest.mark.parametrize("half_width", [1.2248, -0.1, math.nan, math.inf])
def test_a_uniform_noise_outside_the_assumption_is_refused(half_width):
    with refused("OutOfRange", "half_width is", "[0, 1.224"):
        op.Uniform(half_width)


@pytest.mark.parametrize("make", [op.Gaussian, op.Uniform])
@pytest.mark.parametrize("width", ["0.5", None, 1j])
def test_a_width_that_is_no_number_is_refused(make, width):
    with refused(None, "it must be a number"):
        make(width)


@pytest.mark.parametrize("noise", ALL, ids=repr)
def test_noises_are_values(noise):
    assert noise == pickle.loads(pickle.dumps(noise))
    assert len({noise, pickle.loads(pickle.dumps(noise))}) == 1
    assert [other for other in ALL if other == noise] == [noise]


def test_a_noise_cannot_be_changed():
    with pytest.raises(AttributeError):
        op.Gaussian(0.25).sigma = 10.0
