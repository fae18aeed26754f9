"""Failures of uploads, one model per file. Files in this folder are discovered automatically."""

from __future__ import annotations

from wirelessfl.failures.base import Failing, Failures
from wirelessfl.registry import Kind

FAILURES: Kind[Failures] = Kind("failures", __name__, Failures)
"""All models of uploads that fail."""

__all__ = ["FAILURES", "Failing", "Failures"]
