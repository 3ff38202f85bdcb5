"""Whether tests try everything, or a sample that is quick: `RHEOSTAT_EVERY_K=1` in the environment."""

import os

EVERY = os.environ.get("RHEOSTAT_EVERY_K") == "1"
