"""Errors that a user can fix: each message names the problem, the value and the remedy."""


class ConfigError(ValueError):
    """A setting is invalid, or settings conflict with each other."""


class DataError(ValueError):
    """A data set is missing or damaged, or cannot be split as requested."""


class TrainingError(RuntimeError):
    """Training failed; the message names the client, the round and the batch."""


def out_of_memory(error: BaseException) -> bool:
    """Whether an allocation failed, by Python or NumPy, or by torch on the CPU or the GPU."""
    on_gpu = type(error).__name__ == "OutOfMemoryError"  # torch's: importing torch takes a second
    return isinstance(error, MemoryError) or on_gpu or "DefaultCPUAllocator" in str(error)
