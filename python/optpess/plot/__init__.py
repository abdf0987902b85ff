"""Figures of runs. Needs matplotlib (``pip install optpess[plot]``)."""

from optpess.plot.panels import plot_run, plot_runs

__all__ = ["plot_run", "plot_runs"]
