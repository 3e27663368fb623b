"""Commands that need more than the base installation say so before they start."""

from __future__ import annotations

import importlib.util

from seapost.model.errors import InvalidSetting


def require(command: str, extra: str, *modules: str) -> None:
    """Raise InvalidSetting, with the extra to install, when a module that a command needs is missing."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    if missing:
        raise InvalidSetting(f"`orbit {command}` needs {' and '.join(missing)}: install seapost[{extra}].")
