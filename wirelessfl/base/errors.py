"""Errors that a user can fix: each message names the problem, the value and the remedy."""

import errno

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Numbers of errors of a full disk."""


class _Listed(type):
    """Leaves what all exceptions have out of ``help`` and of completions of the class."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name not in _OF_ALL]


_OF_ALL = frozenset(dir(ValueError)) | frozenset(dir(RuntimeError)) | {"__weakref__"}


class ConfigError(ValueError, metaclass=_Listed):
    """A setting is invalid, or settings conflict with each other.

    >>> import wirelessfl
    >>> try:
    ...     wirelessfl.Config.from_flags("fedavg", rounds=0)
    ... except wirelessfl.ConfigError as error:
    ...     print(error)
    training.rounds is 0: give a whole number >= 1.
    """


class DataError(ValueError, metaclass=_Listed):
    """A data set is missing or damaged, or cannot be split as requested.

    >>> import wirelessfl.data
    >>> try:
    ...     wirelessfl.data.load_dataset("mnist", "nowhere")
    ... except wirelessfl.DataError as error:
    ...     print(str(error)[:24])
    nowhere/mnist is not a f
    """


class TrainingError(RuntimeError, metaclass=_Listed):
    """Training failed; the message names the client, the round and the batch.

    >>> import wirelessfl
    >>> str(wirelessfl.TrainingError("client 3, round 2: the loss is not finite"))
    'client 3, round 2: the loss is not finite'
    """


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, by Python or NumPy, or by torch on the CPU or the GPU."""
    on_gpu = type(error).__name__ == "OutOfMemoryError"  # torch's: importing torch takes a second
    return isinstance(error, MemoryError) or on_gpu or "DefaultCPUAllocator" in str(error)


def disk_full(error: BaseException) -> bool:
    """Whether there is no space for a file."""
    return getattr(error, "errno", None) in FULL
