"""Noise models: how an observed reward or cost differs from its mean.

The constructors refuse noise that violates the paper's Assumption 2.1 (variance proxy at most 1/2).
"""

from __future__ import annotations

from dataclasses import dataclass

from optpess import _core
from optpess.checks import real_number

__all__ = ["Bernoulli", "Deterministic", "Gaussian", "Noise", "Uniform"]


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """The observation is 1 with probability equal to its mean, else 0.

    Example:
        >>> import optpess as op
        >>> op.zoo.pair().noise
        Bernoulli()
    """

    def _spec(self) -> tuple[str, float]:
        return ("bernoulli", 0.0)


@dataclass(frozen=True, slots=True)
class Deterministic:
    """The observation is its mean.

    Example:
        >>> import optpess as op
        >>> op.CMDP([[[[1.0]]]], [[[0.5]]], [[[0.25]]], 1.0, [1.0], op.Deterministic()).noise
        Deterministic()
    """

    def _spec(self) -> tuple[str, float]:
        return ("deterministic", 0.0)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """Normal noise with standard deviation ``sigma``; sigma squared may be at most 1/2.

    Example:
        >>> import optpess as op
        >>> op.Gaussian(0.1)
        Gaussian(sigma=0.1)
    """

    sigma: float

    def __post_init__(self) -> None:
        _core.check_noise("gaussian", real_number("sigma", self.sigma))

    def _spec(self) -> tuple[str, float]:
        return ("gaussian", float(self.sigma))


@dataclass(frozen=True, slots=True)
class Uniform:
    """Noise uniform on [-half_width, half_width]; half_width squared may be at most 3/2.

    The variance proxy of a uniform variable is its variance, half_width squared over 3.

    Example:
        >>> import optpess as op
        >>> op.Uniform(0.25)
        Uniform(half_width=0.25)
    """

    half_width: float

    def __post_init__(self) -> None:
        _core.check_noise("uniform", real_number("half_width", self.half_width))

    def _spec(self) -> tuple[str, float]:
        return ("uniform", float(self.half_width))


Noise = Bernoulli | Deterministic | Gaussian | Uniform
