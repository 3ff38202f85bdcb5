"""The rules for every journal: subclass `JournalConformance`, implement `make_journal`, and run pytest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest

from rheostat.errors import InvalidValue, LeaseRefused
from rheostat.job.decision import Decision
from rheostat.job.record import KIND_OF, KINDS, IntentStep, Record, Run, Snapshot
from rheostat.ports import Journal, Lease
from rheostat.testing.records import EXAMPLES, JOB

TTL_S = 30.0


@dataclass
class Wall:
    """A wall clock that moves only when a test sets `now_s`."""

    now_s: float = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the present moment."""
        return self.now_s


def snapshot(at_s: float) -> Snapshot:
    """Return a small snapshot."""
    return Snapshot(at_s, 0, "{}", "{}")


def intent_step(name: str) -> IntentStep:
    """Return a small record that is neither a snapshot nor a run."""
    return IntentStep("a-1", name, 0.0)


class JournalConformance:
    """The rules of the `Journal` port, one test each."""

    def make_journal(self, tmp_path: Path, wall: Callable[[], float]) -> Journal:
        """Return a new, empty journal that takes the time from `wall`."""
        raise NotImplementedError

    @pytest.fixture
    def wall(self) -> Wall:
        """The clock of the journal."""
        return Wall()

    @pytest.fixture
    def journal(self, tmp_path: Path, wall: Wall) -> Iterator[Journal]:
        """The journal under test."""
        journal = self.make_journal(tmp_path, wall)
        yield journal
        journal.close()

    @pytest.fixture
    def lease(self, journal: Journal) -> Lease:
        """The first lease of a job without records."""
        return journal.acquire(JOB, "first", TTL_S)

    # Records

    def test_examples_cover_every_kind(self) -> None:
        """The tests below cover every kind of record."""
        assert {KIND_OF[type(record)] for record in EXAMPLES} == set(KINDS)

    @pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: KIND_OF[type(record)])
    def test_a_record_is_read_exactly_as_written(self, journal: Journal, lease: Lease, record: Record) -> None:
        """It is equal, of the same type, and every float is the same to the last bit."""
        number = journal.append(lease, 12, [record])
        [entry] = journal.read(JOB)
        assert entry.record == record
        assert type(entry.record) is type(record)
        assert repr(entry.record) == repr(record)  # distinguishes 1 from 1.0, -0.0 from 0.0, a list from a tuple
        assert (entry.number, entry.step) == (number, 12)
        assert journal.latest(JOB, KIND_OF[type(record)]) == entry

    def test_reads_in_the_order_of_writing(self, journal: Journal, lease: Lease) -> None:
        """Numbers rise, within a batch and between batches, and `append` returns the last one."""
        last = [journal.append(lease, step, [intent_step(f"{step}.{i}") for i in range(3)]) for step in range(4)]
        entries = list(journal.read(JOB))
        assert [e.step for e in entries] == [step for step in range(4) for _ in range(3)]
        assert [cast(IntentStep, e.record).name for e in entries] == [f"{s}.{i}" for s in range(4) for i in range(3)]
        assert all(a.number < b.number for a, b in pairwise(entries))
        assert last == [e.number for e in entries[2::3]]

    def test_reads_long_journals_completely(self, journal: Journal, lease: Lease) -> None:
        """No record is lost or repeated between two pages of a journal."""
        for step in range(4):
            journal.append(lease, step, [intent_step(str(i)) for i in range(256)])
        numbers = [e.number for e in journal.read(JOB)]
        assert len(numbers) == len(set(numbers)) == 1024
        assert numbers == sorted(numbers)

    def test_reads_after_a_number(self, journal: Journal, lease: Lease) -> None:
        """`after` is the last number already read."""
        first, second, third = (journal.append(lease, step, [intent_step("x")]) for step in range(3))
        assert [e.number for e in journal.read(JOB, after=first)] == [second, third]
        assert list(journal.read(JOB, after=third)) == []

    def test_reads_only_the_selected_kinds(self, journal: Journal, lease: Lease) -> None:
        """Several kinds are read in the order of writing."""
        journal.append(lease, 0, EXAMPLES)
        selected = [record for record in EXAMPLES if isinstance(record, Decision | Snapshot)]
        assert [e.record for e in journal.read(JOB, kinds=("snapshot", "decision"))] == selected

    def test_writing_while_reading_is_possible(self, journal: Journal, lease: Lease) -> None:
        """An unfinished read does not block the writer."""
        journal.append(lease, 0, [intent_step(str(i)) for i in range(600)])
        reader = journal.read(JOB)
        first = next(reader)
        last = journal.append(lease, 1, [intent_step("late")])
        assert first.number < last
        assert len(list(reader)) >= 599

    def test_refuses_unknown_kinds(self, journal: Journal) -> None:
        """A misspelt kind is an error, not an empty result."""
        with pytest.raises(InvalidValue, match="did you mean 'snapshot'"):
            journal.read(JOB, kinds=("snapshoot",))
        with pytest.raises(InvalidValue, match="did you mean 'decision'"):
            journal.latest(JOB, "decisions")

    def test_latest_is_the_newest_of_its_kind(self, journal: Journal, lease: Lease) -> None:
        """Records of other kinds do not matter; without a record it is None."""
        assert journal.latest(JOB, "snapshot") is None
        journal.append(lease, 0, [snapshot(1.0), snapshot(2.0)])
        journal.append(lease, 1, [intent_step("x")])
        latest = journal.latest(JOB, "snapshot")
        assert latest is not None
        assert latest.record == snapshot(2.0)

    @pytest.mark.parametrize("place", [0, 1, 2])
    def test_writes_nothing_of_a_batch_with_a_bad_record(self, journal: Journal, lease: Lease, place: int) -> None:
        """All or none, wherever the invalid record is in the batch."""
        journal.append(lease, 0, [intent_step("before")])
        batch: list[Any] = [intent_step("good"), intent_step("good")]
        batch.insert(place, object())
        with pytest.raises(InvalidValue, match="object is not a journal record"):
            journal.append(lease, 1, batch)
        assert [e.step for e in journal.read(JOB)] == [0]
        journal.append(lease, 2, [intent_step("after")])
        assert [e.step for e in journal.read(JOB)] == [0, 2]

    def test_an_empty_batch_only_extends_the_lease(self, journal: Journal, lease: Lease, wall: Wall) -> None:
        """It is the heartbeat of a controller without records, and returns the job's last number."""
        assert journal.append(lease, 0, []) == 0
        last = journal.append(lease, 0, [intent_step("x")])
        wall.now_s += TTL_S - 1
        assert journal.append(lease, 1, []) == last
        wall.now_s += TTL_S - 1
        with pytest.raises(LeaseRefused):
            journal.acquire(JOB, "second", TTL_S)

    def test_jobs_are_separate(self, journal: Journal, lease: Lease) -> None:
        """Records, latest records and leases belong to one job."""
        other = journal.acquire("other", "first", TTL_S)
        journal.append(lease, 1, [intent_step("mine")])
        journal.append(other, 2, [snapshot(9.0), intent_step("theirs")])
        assert [e.step for e in journal.read(JOB)] == [1]
        assert [e.step for e in journal.read("other")] == [2, 2]
        assert journal.latest(JOB, "snapshot") is None
        assert journal.prune(lease, math.inf) == 0
        assert list(journal.read("unknown")) == []

    def test_jobs_are_those_with_records(self, journal: Journal, lease: Lease) -> None:
        """They are in alphabetical order; a job with only a lease is not listed."""
        assert journal.jobs() == ()
        for name in ("b", "ä", "B", "a"):
            journal.append(journal.acquire(name, "first", TTL_S), 0, [intent_step("x")])
        assert journal.jobs() == ("B", "a", "b", "ä")

    # Leases

    @pytest.mark.parametrize("holder", ["second", "first"])
    def test_refuses_a_lease_that_is_held(self, journal: Journal, lease: Lease, wall: Wall, holder: str) -> None:
        """Even to a second controller of the same name; the message names the holder and the remaining time."""
        wall.now_s += 10.0
        with pytest.raises(LeaseRefused, match=r"held by 'first' for another 20\.0 s"):
            journal.acquire(JOB, holder, TTL_S)
        journal.append(lease, 0, [intent_step("still mine")])

    def test_an_expired_lease_is_taken_over_and_the_old_one_fenced(
        self, journal: Journal, lease: Lease, wall: Wall
    ) -> None:
        """The token rises; the old holder can neither write nor prune nor release."""
        journal.append(lease, 0, [intent_step("old"), snapshot(1.0)])
        wall.now_s += TTL_S
        second = journal.acquire(JOB, "second", TTL_S)
        assert second.token > lease.token
        for write in (
            lambda: journal.append(lease, 1, [intent_step("late")]),
            lambda: journal.append(lease, 1, []),
            lambda: journal.prune(lease, math.inf),
        ):
            with pytest.raises(LeaseRefused, match="taken over by 'second'"):
                write()  # type: ignore[no-untyped-call]
        journal.release(lease)
        with pytest.raises(LeaseRefused, match="held by 'second'"):
            journal.acquire(JOB, "third", TTL_S)
        journal.append(second, 2, [intent_step("new")])
        assert [e.step for e in journal.read(JOB)] == [0, 0, 2]

    def test_a_new_lease_of_the_same_name_fences_the_old_one(self, journal: Journal, lease: Lease, wall: Wall) -> None:
        """A restarted controller has the same name as before; only the token differs."""
        wall.now_s += TTL_S + 1
        again = journal.acquire(JOB, "first", TTL_S)
        with pytest.raises(LeaseRefused, match="taken over"):
            journal.append(lease, 0, [intent_step("ghost")])
        journal.append(again, 0, [intent_step("alive")])

    def test_an_expired_lease_is_valid_until_it_is_taken_over(self, journal: Journal, lease: Lease, wall: Wall) -> None:
        """A controller that was suspended continues, and its write extends the lease."""
        wall.now_s += 10 * TTL_S
        journal.append(lease, 0, [intent_step("late, but not taken over")])
        wall.now_s += TTL_S - 1
        with pytest.raises(LeaseRefused, match=r"another 1\.0 s"):
            journal.acquire(JOB, "second", TTL_S)

    def test_a_released_lease_is_free_at_once(self, journal: Journal, lease: Lease) -> None:
        """Its token is not granted again, and it cannot write any more."""
        journal.release(lease)
        journal.release(lease)
        with pytest.raises(LeaseRefused, match="has released job"):
            journal.append(lease, 0, [intent_step("x")])
        assert journal.acquire(JOB, "second", TTL_S).token > lease.token

    def test_refuses_a_lease_that_was_never_granted(self, journal: Journal, lease: Lease) -> None:
        """A lease with an unknown job, token or holder is refused."""
        for fake in (Lease("unknown", "x", 1), Lease(JOB, "first", lease.token + 1), Lease(JOB, "x", lease.token)):
            journal.release(fake)
            with pytest.raises(LeaseRefused):
                journal.append(fake, 0, [intent_step("x")])
        assert journal.jobs() == ()
        journal.append(lease, 0, [intent_step("x")])

    @pytest.mark.parametrize(
        ("job", "holder", "ttl_s"), [("", "x", 1.0), ("x", "", 1.0), ("x", "x", 0.0), ("x", "x", math.nan)]
    )
    def test_refuses_an_invalid_lease(self, journal: Journal, job: str, holder: str, ttl_s: float) -> None:
        """A lease needs names and a positive time to live."""
        with pytest.raises(InvalidValue, match="lease"):
            journal.acquire(job, holder, ttl_s)

    def test_exactly_one_of_several_controllers_gets_the_lease(self, journal: Journal, wall: Wall) -> None:
        """Of controllers that start together, one gets the lease: of a new job, and of every expired lease."""
        together = Barrier(4)

        def attempt(number: int) -> Lease | None:
            together.wait()
            try:
                return journal.acquire(JOB, f"holder {number}", TTL_S)
            except LeaseRefused:
                return None

        with ThreadPoolExecutor(4) as pool:
            for token in range(1, 11):
                [lease] = [lease for lease in pool.map(attempt, range(4)) if lease is not None]
                assert lease.token == token
                journal.append(lease, 0, [intent_step("x")])
                wall.now_s += TTL_S

    def test_batches_written_at_once_do_not_mix(self, journal: Journal) -> None:
        """Controllers of several jobs share a journal; the batches of each job stay complete and in order."""
        together = Barrier(4)

        def write(name: str) -> None:
            lease = journal.acquire(name, "first", TTL_S)
            together.wait()
            for step in range(20):
                journal.append(lease, step, [intent_step(str(i)) for i in range(3)])

        names = [f"job {i}" for i in range(4)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(write, names))
        for name in names:
            assert [e.step for e in journal.read(name)] == [step for step in range(20) for _ in range(3)]

    def test_finds_the_last_records(self, journal: Journal, lease: Lease) -> None:
        """`tail` says after which number they begin; 0 where there are no more than that."""
        other = journal.acquire("other", "first", TTL_S)
        for step in range(5):
            journal.append(other, step, [intent_step("theirs")])
            journal.append(lease, step, [intent_step("mine"), intent_step("mine")])
        numbers = [e.number for e in journal.read(JOB)]
        for count in range(12):
            assert [e.number for e in journal.read(JOB, journal.tail(JOB, count))] == numbers[max(0, 10 - count) :]
        assert journal.tail(JOB, 3, before=numbers[8]) == numbers[4]
        assert journal.tail(JOB, 9, before=numbers[8]) == 0
        assert journal.tail("unknown", 3) == 0

    # Retention

    def test_prunes_before_the_newest_old_snapshot(self, journal: Journal, lease: Lease) -> None:
        """It deletes the records before that snapshot, except the run that it belongs to; all later ones stay."""
        run = EXAMPLES[0]
        assert isinstance(run, Run)
        journal.append(lease, 0, [run, intent_step("a"), snapshot(10.0), intent_step("b")])
        journal.append(lease, 1, [snapshot(20.0), run, intent_step("c"), snapshot(30.0), intent_step("d")])
        before = list(journal.read(JOB))
        assert journal.prune(lease, 9.9) == 0
        assert list(journal.read(JOB)) == before
        assert journal.prune(lease, 29.9) == 3
        assert list(journal.read(JOB)) == [before[0], *before[4:]]
        assert journal.prune(lease, 29.9) == 0
        assert journal.prune(lease, 30.0) == 3
        assert list(journal.read(JOB)) == [before[5], *before[7:]]

    def test_prunes_no_other_job(self, journal: Journal, lease: Lease) -> None:
        """Pruning one job deletes no record of another."""
        other = journal.acquire("other", "first", TTL_S)
        journal.append(other, 0, [intent_step("theirs"), snapshot(1.0)])
        journal.append(lease, 0, [intent_step("mine"), snapshot(1.0)])
        assert journal.prune(lease, 1.0) == 1
        assert len(list(journal.read("other"))) == 2

    def test_prunes_long_journals_completely(self, journal: Journal, lease: Lease) -> None:
        """The result counts all deleted records, also over several transactions."""
        journal.append(lease, 0, [intent_step("x")] * 4_500)
        journal.append(lease, 1, [snapshot(1.0)])
        assert journal.prune(lease, 1.0) == 4_500
        assert [e.step for e in journal.read(JOB)] == [1]

    def test_pruned_records_are_no_longer_the_newest(self, journal: Journal, lease: Lease) -> None:
        """And numbers keep rising afterwards."""
        journal.append(lease, 0, [intent_step("x")])
        last = journal.append(lease, 1, [snapshot(1.0)])
        journal.prune(lease, 1.0)
        assert journal.latest(JOB, "intent_step") is None
        assert journal.latest(JOB, "snapshot") is not None
        assert journal.append(lease, 2, [intent_step("y")]) > last
