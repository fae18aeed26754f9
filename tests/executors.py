"""The executors that tests compare: each makes one for a task and data."""

from wirelessfl.training.module_executors import LoopExecutor, VmapExecutor
from wirelessfl.training.stacked import StackedExecutor

EXECUTORS = {
    "loop": lambda task, data: LoopExecutor(task, data),
    "vmap 5": lambda task, data: VmapExecutor(task, data, 5),
    "vmap 2": lambda task, data: VmapExecutor(task, data, 2),
    "vmap 1": lambda task, data: VmapExecutor(task, data, 1),
    "vmap 2, flat": lambda task, data: VmapExecutor(task, data, 2, flat=True),
    "vmap 2, recorded": lambda task, data: VmapExecutor(task, data, 2, recorded=True),
    "stacked 5": lambda task, data: StackedExecutor(task, data, 5),
    "stacked 2": lambda task, data: StackedExecutor(task, data, 2),
    "stacked 1": lambda task, data: StackedExecutor(task, data, 1),
    "stacked 2, recorded": lambda task, data: StackedExecutor(task, data, 2, recorded=True),
}
"""All, with chunks of several sizes, by name."""
ANY_MODULE = {
    name: EXECUTORS[name]
    for name in ("loop", "vmap 2", "vmap 1", "vmap 2, flat", "vmap 2, recorded")
}
"""Those that train any module, not only linear layers and convolutions."""
