"""How hard to try: `make test` runs the quick part, `make trust` (TRUST=1) all of it."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

#: Whether everything is to be run.
DEEP = os.environ.get("TRUST") == "1"


def effort(quick: int, deep: int) -> int:
    """How many tries."""
    return deep if DEEP else quick


def examples(quick: int, deep: int) -> settings:
    """Settings of Hypothesis: the same examples in every quick run, others in every deep one."""
    return settings(
        max_examples=effort(quick, deep),
        deadline=None,
        derandomize=not DEEP,
        database=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )
