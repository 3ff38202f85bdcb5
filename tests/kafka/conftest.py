"""One real broker per test run."""

from collections.abc import Iterator

import pytest
from kafka_world import running_broker

from rheostat.kafka.broker import Broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with running_broker() as started:
        yield started
