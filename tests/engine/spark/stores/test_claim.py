"""The claim on a checkpoint, on stores of several kinds: one driver has it, and keeps it while it lives."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from bad_store import BadStore, Fault, add_to
from every import EVERY
from lifecycle_stores import S3, Bad, Store
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from s3_server import RefusedError, Request, S3Server

from rheostat.clock import WallClock
from rheostat.engine.spark.lifecycle import owner as owners
from rheostat.engine.spark.lifecycle.application import spark_checkpoint
from rheostat.engine.spark.lifecycle.files import HadoopFiles
from rheostat.engine.spark.lifecycle.owner import FOLDER, FRESH_S, RENEW_S, Driver, Overtaken, Owner, Process

pytestmark = pytest.mark.cluster

CLAIMS = "/rheostat/drivers/"
WAIT_S = 30.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fifth of the time pass for every wait, so that a slow machine does not look like a dead driver."""
    for name in ("RENEW_S", "FRESH_S", "PATIENCE_S", "SETTLE_S", "LOOK_S"):
        monkeypatch.setattr(owners, name, getattr(owners, name) / 5)


class Drivers:
    """Drivers on one checkpoint, which do not see each other's processes."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark, self.location = spark, location
        self.files, self.lost = HadoopFiles(spark, location), list[Overtaken]()
        self._all: list[Owner] = []

    def one(self) -> Owner:
        me = replace(Driver.here(Process.of(os.getpid())), machine="another kernel")
        self._all.append(Owner(spark_checkpoint(self._spark, self.location), me, WallClock(), self.lost.append))
        return self._all[-1]

    def claims(self) -> list[str]:
        return sorted(self.files.entries(*FOLDER))

    def renewals(self) -> int:
        text = self.files.text(*FOLDER, self.claims()[-1])
        try:
            return int(json.loads(text or "")["count"])
        except ValueError:
            return 0

    def end(self) -> None:
        for one in self._all:
            one._ending.set()
            if one._thread is not None:
                one._thread.join(WAIT_S)


@pytest.fixture
def drivers(spark: SparkSession, store: Store) -> Iterator[Drivers]:
    several = Drivers(spark, store.url("checkpoint"))
    yield several
    several.end()


def wait_until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_of_two_drivers_exactly_one_gets_the_claim(drivers: Drivers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the rounds begin without a claim, half take over a stale one."""
    monkeypatch.setattr(owners, "SETTLE_S", 0.02)
    for turn in range(100 if EVERY else 20):
        for name in drivers.claims():
            drivers.files.delete(*FOLDER, name)
        number = 8 * (turn % 2)
        if number:
            drivers.files.create("half a cl", *FOLDER, str(number))
        both, won = threading.Barrier(2), list[Owner]()

        def take(one: Owner, both: threading.Barrier, won: list[Owner], number: int) -> None:
            both.wait(WAIT_S)
            if one._take(number + 1):
                won.append(one)

        pair = [drivers.one(), drivers.one()]
        threads = [threading.Thread(target=take, args=(one, both, won, number)) for one in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert len(won) == 1, turn
        won[0].confirm()
        (loser,) = (one for one in pair if one is not won[0])
        loser._number = number + 1
        with pytest.raises(Overtaken):
            loser.confirm()
        assert drivers.claims() == [str(number + 1)]


def test_the_loser_waits_and_is_refused_and_a_released_claim_is_taken_at_once(drivers: Drivers) -> None:
    first, second = drivers.one(), drivers.one()
    first.claim()
    begun_s = time.monotonic()
    with pytest.raises(Overtaken, match="stop the other one first"):
        second.claim()
    assert time.monotonic() - begun_s >= owners.FRESH_S + owners.PATIENCE_S
    first.release()
    begun_s = time.monotonic()
    second.claim()
    assert time.monotonic() - begun_s < owners.FRESH_S
    assert drivers.claims() == ["2"]
    assert drivers.lost == []


def test_a_silent_driver_is_overtaken_when_it_is_stale_and_learns_it(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = drivers.one(), drivers.one()
    with monkeypatch.context() as silent:
        silent.setattr(owners, "RENEW_S", 4 * owners.FRESH_S)
        first.claim()
        begun_s = time.monotonic()
        second.claim()
        assert time.monotonic() - begun_s >= owners.FRESH_S
    with pytest.raises(Overtaken):
        first.confirm()
    second.confirm()


def test_renewals_that_fail_or_lose_their_answers_do_not_lose_the_claim(drivers: Drivers, store: Store) -> None:
    holder = drivers.one()
    holder.claim()
    hits = set()
    for effect, kind in product(("fail", "lose"), ("create", "close", "rename", "list")):
        with store.faults(Fault(effect, kind, nth=1, path=CLAIMS.rstrip("/"))):  # type: ignore[arg-type]
            before = holder._me.count
            wait_until(lambda before=before: holder._me.count > before + 2)  # type: ignore[misc]
            hits |= {(effect, kind)} if store.hit else set()
    assert {("fail", "create"), ("lose", "create"), ("fail", "list"), ("lose", "list")} <= hits
    holder.confirm()
    assert drivers.lost == []
    assert drivers.renewals() > 8
    assert [name for name in drivers.claims() if not name.startswith(".")] == ["1"]


def test_a_living_driver_on_a_slow_store_is_not_stale(drivers: Drivers, store: Store) -> None:
    """Calls of 200 ms, in a fifth of the time."""
    with store.faults(Fault("slow", "any", ms=40)):
        holder = drivers.one()
        holder.claim()
        with pytest.raises(Overtaken, match="stop the other one first"):
            drivers.one().claim()
        holder.confirm()


def test_a_renewal_of_200_ms_per_call_is_in_time(drivers: Drivers, store: Store) -> None:
    renewing = drivers.one()
    assert renewing._take(1)
    before = store.count("any")
    renewing.renew()
    calls = store.count("any") - before
    assert calls > 2
    assert RENEW_S + 2 * 0.2 * calls < FRESH_S, calls


def test_a_claim_whose_answer_is_lost_is_ours(drivers: Drivers, store: Store) -> None:
    lost = Fault("lose", "create" if isinstance(store, S3) else "close", nth=1, path=CLAIMS + "1")
    with store.faults(lost):
        drivers.one().claim()
    assert store.hit
    assert drivers.claims() == ["1"]
    assert drivers.renewals() >= 0


def test_a_create_that_fails_half_way_costs_the_next_driver_a_wait(drivers: Drivers, store: Store) -> None:
    """An empty file may be another driver's, which has not written it yet."""
    if isinstance(store, S3):
        pytest.skip("an object is written whole")
    with store.faults(Fault("lose", "create", nth=1, path=CLAIMS)), pytest.raises(Py4JJavaError, match="is lost"):
        drivers.one().claim()
    begun_s = time.monotonic()
    drivers.one().claim()
    assert time.monotonic() - begun_s >= owners.FRESH_S
    assert drivers.claims() == ["2"]


def test_on_s3_a_claim_is_a_conditional_create_and_a_renewal_one_atomic_write(
    s3_spark: SparkSession, server: S3Server, tmp_path: Path
) -> None:
    several = Drivers(s3_spark, f"s3a://bucket/{tmp_path.name}")
    holder = several.one()

    def writes(since: int) -> list[tuple[str, str, str]]:
        asked = [one for one in server.requests[since:] if one.method in ("PUT", "POST", "DELETE")]
        return [(one.method, one.key.rpartition("/")[2], one.headers.get("if-none-match", "")) for one in asked]

    since = len(server.requests)
    assert holder._take(1)
    assert writes(since) == [("PUT", "", ""), ("PUT", "1", "*")]  # the folder's marker, and the claim
    since = len(server.requests)
    holder.renew()
    assert writes(since) == [("PUT", "1", "")]


def test_an_object_that_is_replaced_while_it_is_read_is_read_again(
    s3_spark: SparkSession, server: S3Server, tmp_path: Path
) -> None:
    files = HadoopFiles(s3_spark, f"s3a://bucket/{tmp_path.name}")
    files.replace("text", "claim")
    refused: list[str] = []

    def change(request: Request) -> None:
        if request.method == "GET" and request.key.endswith("/claim") and len(refused) < 2:
            refused.append(request.key)
            raise RefusedError(412, "PreconditionFailed")

    server.before = change
    assert files.text("claim") == "text"
    assert len(refused) == 2


def test_a_store_that_deletes_before_it_renames_does_not_show_a_free_checkpoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_to(spark, "deleting")
    bad = BadStore(tmp_path)
    several = Drivers(spark, bad.url("checkpoint"))
    first, second = several.one(), several.one()
    assert first._take(1)
    renewal = threading.Thread(target=first.renew)
    with bad.faults(Fault("hold", "rename", path=CLAIMS)):
        renewal.start()
        wait_until(lambda: bad.calls("rename", CLAIMS))
        assert "1" not in several.claims()
        sight = second.look()
        assert sight.number == 1
        assert not second._is_free(sight, owners.FRESH_S)
    renewal.join(WAIT_S)
    first.confirm()
    assert several.claims() == ["1"]


def test_a_store_whose_renames_do_not_overwrite_shows_renewals_and_keeps_no_drafts(
    spark: SparkSession, tmp_path: Path
) -> None:
    add_to(spark, "FileSystem")
    store = Bad(tmp_path, access="FileSystem")
    several = Drivers(spark, store.url("checkpoint"))
    holder = several.one()
    assert holder._take(1)
    for renewal in (1, 2, 3):
        holder.renew()
        assert several.renewals() == renewal
    assert several.claims() == ["1"]
