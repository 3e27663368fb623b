"""Seeds of random tests: a fresh one for each run, printed, and given back by SEAPOST_SEED to play a run again."""

from __future__ import annotations

import os
import random
from typing import Final

SEED_VARIABLE: Final = "SEAPOST_SEED"


def new_seed() -> int:
    """Return the seed of this run and say it; a failed test shows what was said."""
    seed = int(os.environ.get(SEED_VARIABLE) or random.SystemRandom().randrange(2**32))
    print(f"{SEED_VARIABLE}={seed} plays this run again")  # noqa: T201 - pytest shows it when the test fails
    return seed
