"""Reports: one HTML page that says what was run, what came of it and what is guaranteed."""

from optpess.report.write import write_report

__all__ = ["write_report"]
