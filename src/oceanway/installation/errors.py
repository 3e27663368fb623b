"""What an installation refuses to work with."""

from __future__ import annotations

from seapost.model.errors import SeapostError


class ReleaseIncomplete(SeapostError):
    """The active definition of this database does not hold what this release's events need; activate it first."""
