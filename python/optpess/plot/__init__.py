"""Figures of runs, rollouts, plans and frontiers. They need matplotlib, the extra ``plot``."""

from optpess.plot.frontiers import plot_frontier
from optpess.plot.picture import Picture
from optpess.plot.plans import plot_plan
from optpess.plot.rollouts import plot_rollout
from optpess.plot.runs import pictures, plot_run, plot_runs

__all__ = [
    "Picture",
    "pictures",
    "plot_frontier",
    "plot_plan",
    "plot_rollout",
    "plot_run",
    "plot_runs",
]
