"""An application without `spark.executor.maxNumFailures`, as a user may start it: how many crashes does it survive?"""

from __future__ import annotations

import os
import time

from rheostat.engine.spark.session.session import session_settings, start_session
from rheostat.engine.spark.session.settings import FAILURES
from rheostat.errors import InvalidValue
from rheostat.lab.clusters.driver import NAME, Place, start_query, write_whole
from rheostat.lab.experiment.processes import Child, await_true, enclose, executors_below, kill_an_executor

MOST = 8
"""Crashes after which no more are caused: Spark ends the application with the fourth, and executors come until then."""
END_S = 120.0
"""Seconds in which the application must have ended after that."""


def run_unprotected(place: Place) -> None:
    """Run until Spark itself stops the application; leave `autoscale`'s refusal in the file `refusal`."""
    from rheostat.api.autoscale import autoscale

    os.environ.update(place.environment)
    enclose(place.folder, str(place.folder / "driver.log"))
    settings = session_settings(NAME, place.master, max_executors=place.most, memory_mb=512, conf=place.conf)
    spark = start_session({key: value for key, value in settings.items() if key != FAILURES.key})
    query = start_query(spark, place.folder)
    try:
        autoscale(query, max_executors=place.most, journal=str(place.folder / "journal.db"))
    except InvalidValue as refusal:
        write_whole(place.folder / "refusal", str(refusal))
    stopped = spark.sparkContext._jsc.sc().isStopped
    while not stopped():
        time.sleep(0.2)


def crash(driver: Child) -> int:
    """Kill every executor that comes until the driver ends; return how many."""
    kills = 0
    while driver.exitcode is None and kills < MOST:
        assert await_true(lambda: driver.exitcode is not None or bool(executors_below(os.getpid())), 120.0)
        kills += driver.exitcode is None and kill_an_executor()
        await_true(lambda: driver.exitcode is not None or not executors_below(os.getpid()), 30.0)
    assert await_true(lambda: driver.exitcode is not None, END_S), f"the application survives {kills} crashes"
    return kills
