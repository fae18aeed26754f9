"""Small runs with a client log."""

import wirelessfl
from wirelessfl import Config, read_client_log

SMALL = {
    "dataset": "digits", "clients": 6, "rounds": 2, "local_steps": 2, "batch_size": 5,
    "executor": "loop", "workers": 1, "hidden": (4, 4),
}  # fmt: skip


def logged(algorithm, folder, **settings):
    """The result of a small run, and its client log."""
    if "cells" in settings:
        settings.setdefault("edge_rounds", 2)
    flags = SMALL | settings
    result = wirelessfl.run(Config.from_flags(algorithm, **flags, client_log=True, out=folder))
    return result, read_client_log(folder)
