"""Contract tests of users' classes and functions: ``wirelessfl check``."""

from wirelessfl.checking.check import check
from wirelessfl.checking.report import Outcome, Report

__all__ = ["Outcome", "Report", "check"]
