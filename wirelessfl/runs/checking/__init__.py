"""Contract tests of users' classes and functions: ``wirelessfl check``."""

from wirelessfl.runs.checking.check import check
from wirelessfl.runs.checking.report import Outcome, Report

__all__ = ["Outcome", "Report", "check"]
