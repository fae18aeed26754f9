"""Names of metrics, and of the fields of rows that they may not have."""

from __future__ import annotations

from wirelessfl.base.errors import ConfigError
from wirelessfl.base.import_paths import module_and_name
from wirelessfl.base.registry import Kind, by_name, subclass
from wirelessfl.base.wording import shown
from wirelessfl.models.metrics.metric import Metric, OwnMetric

METRICS: Kind[Metric] = Kind("metric", "wirelessfl.models.metrics", Metric)
"""All built-in metrics."""
VALIDATION = "validation_"
"""Prefix of the fields of validation samples."""
FIELDS = frozenset(
    [
        "accuracy",
        "allocation",
        "backhaul_mib",
        "buffer",
        "bytes",
        "downlink_mib",
        "dropped",
        "equal_joules",
        "equal_seconds",
        "joules",
        "joules_max",
        "labels",
        "loss",
        "lost",
        "numerics",
        "present",
        "requests",
        "round",
        "round_seconds",
        "session",
        "session_round",
        "silent",
        "sim_seconds",
        "staleness_max",
        "staleness_mean",
        "task",
        "updates",
        "uplink_mib",
        "version",
        "wall_seconds",
        "warm_weights",
    ]
)
"""Fields of rows that no metric may replace."""
PREFIXES = (VALIDATION, "air_error", "extra_", "stored_")
"""Beginnings of further fields of rows: of validation samples, aggregation over the air, sessions.
"""


def check_name(name: object) -> str:
    """The name of a metric.

    >>> from wirelessfl.metrics import check_name
    >>> check_name("f1")
    'f1'

    Raises:
        ConfigError: it is not a name, or that of a field that rows have anyway.
    """
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"a metric is called {shown(name)}: give a name, such as 'f1'.")
    if name in FIELDS or name.startswith(PREFIXES):
        raise ConfigError(f"metric {name!r} has the name of a row field: give another name.")
    return name


def find_metric(name: object) -> Metric:
    """The metric called ``name``, or the user's function or class at that import path.

    >>> from wirelessfl.metrics import find_metric
    >>> find_metric("macro-f1").field, find_metric("torch.nn.functional:l1_loss").field
    ('macro_f1', 'l1_loss')

    Raises:
        ConfigError: it does not exist, is neither a function nor a metric, or has the name of a
            field of rows.
    """
    built_in = METRICS.classes()
    choice = by_name("metric", name, built_in)
    assert isinstance(name, str)
    if isinstance(choice, type) and issubclass(choice, Metric):
        metric: Metric = subclass("metric", name, choice, Metric)()
        check_name(metric.field)
        return metric
    if not callable(choice) or isinstance(choice, type):
        raise ConfigError(
            f"metric {name!r} is {shown(choice)}: give a function f(outputs, labels) that returns "
            "a number."
        )
    return OwnMetric(check_name(module_and_name(name)[1]), choice)


def smaller_is_better(field: str) -> bool:
    """Whether smaller values of a field are better: losses, and built-in metrics of errors.

    >>> from wirelessfl.metrics import smaller_is_better
    >>> smaller_is_better("loss"), smaller_is_better("rmse"), smaller_is_better("accuracy")
    (True, True, False)
    """
    field = field.removeprefix(VALIDATION)
    if field.endswith("loss"):
        return True
    return any(kind().field == field for kind in METRICS.classes().values() if kind.smaller)
