"""Further metrics of rows. Files in this folder are discovered automatically.

A metric of one's own is a function ``f(outputs, labels) -> float``, or a list of numbers, of all
test samples. It is named by its import path or given to ``wirelessfl.run``.
"""

from __future__ import annotations

from wirelessfl.models.metrics.built_in import METRICS, check_name, find_metric, smaller_is_better
from wirelessfl.models.metrics.metric import Measures, Metric, OwnMetric, Predicted, label_shares

__all__ = [
    "METRICS",
    "Measures",
    "Metric",
    "OwnMetric",
    "Predicted",
    "check_name",
    "find_metric",
    "label_shares",
    "smaller_is_better",
]
