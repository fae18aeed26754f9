"""Errors that a user can fix: each message names the problem, the value and the remedy."""


class _Listed(type):
    """Leaves what all exceptions have out of ``help`` and of completions of the class."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name not in _OF_ALL]


_OF_ALL = frozenset(dir(ValueError)) | frozenset(dir(RuntimeError)) | {"__weakref__"}


class ConfigError(ValueError, metaclass=_Listed):
    """A setting is invalid, or settings conflict with each other."""


class DataError(ValueError, metaclass=_Listed):
    """A data set is missing or damaged, or cannot be split as requested."""


class TrainingError(RuntimeError, metaclass=_Listed):
    """Training failed; the message names the client, the round and the batch."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, by Python or NumPy, or by torch on the CPU or the GPU."""
    on_gpu = type(error).__name__ == "OutOfMemoryError"  # torch's: importing torch takes a second
    return isinstance(error, MemoryError) or on_gpu or "DefaultCPUAllocator" in str(error)
