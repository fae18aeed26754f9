"""Errors a user can mend: each says what is wrong, with which value, and what to do."""


class ConfigError(ValueError):
    """Settings that are wrong, or that make no sense together; raised before any work is done."""


class DataError(ValueError):
    """A data set that is absent, damaged, or cannot be split as asked."""


class TrainingError(RuntimeError):
    """Training failed; the message names the client, the round and the batch."""
