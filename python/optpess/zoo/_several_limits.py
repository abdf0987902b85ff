"""Problems with two and three limits: the inventory and the cliff grid with further costs."""

from __future__ import annotations

import numpy as np

from optpess.arrays import BoolArray, FloatArray
from optpess.model import CMDP
from optpess.zoo._literature import cliff_grid, grid_targets, inventory

__all__ = ["cliff_grid_two_hazards", "inventory_stock_out", "inventory_three_limits"]


def inventory_stock_out() -> CMDP:
    """The inventory with two limits: on ordering and holding, and on being out of stock.

    The second cost is 1 in a step that has nothing to sell even after the order has arrived, else 0.
    The limits are 2.5 and 0.25; both bind at the optimum. Ordering one unit whenever the stock is empty
    is safe: it is never out of stock.

    Example:
        >>> import optpess as op
        >>> op.zoo.inventory_stock_out()
        CMDP(horizon=7, num_states=6, num_actions=6, num_constraints=2, dense)
    """
    return _inventory_with([_held() == 0], [2.5, 0.25])


def inventory_three_limits() -> CMDP:
    """The inventory with three limits: on ordering and holding, on being out of stock, on space.

    The first two are those of :func:`inventory_stock_out`. The third cost is 1 in a step that holds more
    than three units once the order has arrived; its limit is 0.5. All three bind at the optimum.

    Example:
        >>> import optpess as op
        >>> op.zoo.inventory_three_limits()
        CMDP(horizon=7, num_states=6, num_actions=6, num_constraints=3, dense)
    """
    return _inventory_with([_held() == 0, _held() > 3], [2.5, 0.25, 0.5])


def cliff_grid_two_hazards() -> CMDP:
    """The cliff grid with falling rocks as a second hazard, so that no way is free.

    An action whose target lies in columns 1 to 4 costs (row of the target / 3) squared of the first, the
    cliff, and (1 - row of the target / 3) squared of the second, the rocks. Each has the limit 1; both
    bind at the optimum. Not moving is safe: "always left" costs nothing.

    Example:
        >>> import optpess as op
        >>> op.zoo.cliff_grid_two_hazards()
        CMDP(horizon=15, num_states=24, num_actions=4, num_constraints=2, dense)
    """
    model = cliff_grid()
    cliff = model.costs[0, 0]
    rows, columns = grid_targets()
    rocks = np.where((columns >= 1) & (columns <= 4), (1 - rows / 3) ** 2, 0.0)
    return CMDP.stationary(
        model.transitions,
        model.rewards[0],
        np.stack([cliff, rocks]),
        [1.0, 1.0],
        model.initial,
        horizon=model.shape.horizon,
    )


def _held() -> FloatArray:
    """Units in stock once the order has arrived, ``[S, A]``."""
    sizes = np.arange(6.0)
    return np.minimum(sizes[:, np.newaxis] + sizes, 5.0)


def _inventory_with(happens: list[BoolArray], limits: list[float]) -> CMDP:
    """The inventory with further costs, each 1 where something happens, else 0."""
    model = inventory()
    return CMDP.stationary(
        model.transitions,
        model.rewards[0],
        np.stack([model.costs[0, 0], *happens]),
        limits,
        model.initial,
        horizon=model.shape.horizon,
    )
