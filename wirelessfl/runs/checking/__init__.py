"""Contract tests of users' classes and functions: ``wirelessfl check``."""

from wirelessfl.runs.checking.check import Outcome, Report, check

__all__ = ["Outcome", "Report", "check"]
