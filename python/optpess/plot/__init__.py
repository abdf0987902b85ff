"""Figures of runs. Needs matplotlib, which the extra ``plot`` installs."""

from optpess.plot.panels import plot_run, plot_runs

__all__ = ["plot_run", "plot_runs"]
