"""Errors that a user can fix: each message names the problem, the value and the remedy."""


class ConfigError(ValueError):
    """A setting is invalid, or settings conflict with each other."""


class DataError(ValueError):
    """A data set is missing or damaged, or cannot be split as requested."""


class TrainingError(RuntimeError):
    """Training failed; the message names the client, the round and the batch."""
