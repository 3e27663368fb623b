"""The doctor: is this database what the release installs, and can its promises hold on this server?"""

from __future__ import annotations

from seapost.database.doctor.examine import examine
from seapost.database.doctor.finding import Examination, Finding, FindingKind

__all__ = ["Examination", "Finding", "FindingKind", "examine"]
