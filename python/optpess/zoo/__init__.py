"""Named constrained MDPs, most of them from the literature, with known answers and safe policies.

Most functions make a model. :func:`problem` makes it together with a safe policy, and :func:`baseline`
gives that policy as learners take it. :func:`names` lists the problems.
"""

from __future__ import annotations

from optpess.zoo._garnet import garnet
from optpess.zoo._literature import (
    cliff_grid,
    inventory,
    job_scheduling,
    media,
    pair,
    paradox,
    ring,
    two_bit,
)
from optpess.zoo._lower_bounds import lower_bound_a, lower_bound_b
from optpess.zoo._problem import Problem, baseline, names, problem
from optpess.zoo._several_limits import (
    cliff_grid_two_hazards,
    inventory_stock_out,
    inventory_three_limits,
)

__all__ = [
    "Problem",
    "baseline",
    "cliff_grid",
    "cliff_grid_two_hazards",
    "garnet",
    "inventory",
    "inventory_stock_out",
    "inventory_three_limits",
    "job_scheduling",
    "lower_bound_a",
    "lower_bound_b",
    "media",
    "names",
    "pair",
    "paradox",
    "problem",
    "ring",
    "two_bit",
]

# As users import it; pickles do not depend on the layout.
Problem.__module__ = __name__


def __dir__() -> list[str]:
    return __all__
