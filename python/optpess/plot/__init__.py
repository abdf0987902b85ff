"""Figures of runs and rollouts. They need matplotlib, the extra ``plot``."""

from optpess.plot.episodes import plot_rollout
from optpess.plot.panels import plot_run, plot_runs

__all__ = ["plot_rollout", "plot_run", "plot_runs"]
