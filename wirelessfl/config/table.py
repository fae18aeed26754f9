"""The read-only table of a choice's settings."""

from __future__ import annotations

from typing import Any, NoReturn

from wirelessfl.errors import ConfigError


class ChoiceTable(dict[str, Any]):
    """The settings of a choice by name, read-only.

    >>> import wirelessfl
    >>> config = wirelessfl.Config.from_flags("fedavg", lr=0.1)
    >>> config.tables["algorithm"]["lr"]
    0.1
    """

    def _refuse(self, *given: Any, **options: Any) -> NoReturn:
        """Refuse a change.

        Raises:
            ConfigError: always.
        """
        raise ConfigError(
            f"the settings of {self.get('name', 'a choice')!r} are read-only: make another "
            'configuration, e.g. config.model_copy(update={"algorithm": {...}}), or give them to '
            "Config.from_flags."
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[ChoiceTable], tuple[dict[str, Any]]]:
        """A copy with the same settings, for pickles and copies."""
        return ChoiceTable, (dict(self),)
