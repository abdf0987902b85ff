"""Studies: many runs, one file a cell, in a folder that can be stopped, resumed, extended and shared."""

from optpess.study.definition import Study
from optpess.study.result import StudyResult, load_study
from optpess.study.sweep import sweep

__all__ = ["Study", "StudyResult", "load_study", "sweep"]
