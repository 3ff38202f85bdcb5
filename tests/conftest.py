"""Every test run tries the same examples; `HYPOTHESIS_PROFILE=explore` tries others, and more."""

import os

import pytest
from hypothesis import settings

settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest, those with clusters of their own."""
    items.sort(key=lambda item: "spark" not in item.path.parts)
