"""Further metrics of rows. Files in this folder are discovered automatically.

A metric of one's own is a function ``f(outputs, labels) -> float``, or a list of numbers, of all
test samples. It is named by its import path or given to ``wirelessfl.run``.
"""

from __future__ import annotations

from wirelessfl.models.metrics.measures import Measures, label_shares
from wirelessfl.models.metrics.metric import Metric, OwnMetric, Predicted
from wirelessfl.models.metrics.names import METRICS, check_name, find_metric, smaller_is_better

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
