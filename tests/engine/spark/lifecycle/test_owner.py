"""The owner of a checkpoint: whoever lives keeps it, whatever clocks and host names say; of two claims one succeeds."""

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from folder_spark import FolderFiles
from step_clock import StepClock

from rheostat.engine.spark.lifecycle import owner as owners
from rheostat.engine.spark.lifecycle.checkpoint import Checkpoint
from rheostat.engine.spark.lifecycle.owner import FOLDER, FRESH_S, GONE_S, PATIENCE_S, Driver, Overtaken, Owner, Process
from rheostat.ports import Clock

NOBODY = Process(2**22 + 1, "0")


class Ticking(StepClock):
    """A clock on which others go on while one sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self.others: list[Owner] = []
        self.each: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.each()
        for other in self.others:
            other.renew()


@pytest.fixture
def clock() -> Ticking:
    return Ticking()


@pytest.fixture
def files(tmp_path: Path) -> FolderFiles:
    return FolderFiles(tmp_path)


@pytest.fixture(autouse=True)
def quiet_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "RENEW_S", 3600.0)  # these tests renew by hand


def unseen(host: str = "far") -> Driver:
    """Return a driver on another machine."""
    return replace(Driver.here(Process.of(os.getpid())), host=host, machine="another kernel")


def owner(files: FolderFiles, clock: Clock, me: Driver | None = None) -> Owner:
    return Owner(Checkpoint(files, lambda *_: None), me or unseen(), clock, lambda _: None)


def claims(files: FolderFiles) -> list[str]:
    return sorted(files.entries(*FOLDER))


def test_a_running_driver_keeps_others_out(files: FolderFiles, clock: Ticking) -> None:
    first, second = owner(files, clock, unseen("one")), owner(files, clock, unseen("two"))
    first.claim()
    clock.others, begun_s = [first], clock.now()
    with pytest.raises(Overtaken, match=f"process {os.getpid()} on one.* runs on .*stop the other one first"):
        second.claim()
    assert clock.now() - begun_s == pytest.approx(FRESH_S + PATIENCE_S, abs=2.0)
    clock.others = []
    first.release()
    begun_s = clock.now()
    second.claim()
    assert clock.now() - begun_s < 1.0  # given back: nobody waits
    first.release()
    assert claims(files) == ["2"]
    with pytest.raises(Overtaken, match="on two"):
        first.confirm()
    second.confirm()


@pytest.mark.parametrize("skew_s", [-3600.0, -21.0, 21.0, 3600.0])
@pytest.mark.parametrize("host", ["far", "same-host-name"])
def test_neither_clocks_nor_host_names_make_a_living_driver_gone(
    files: FolderFiles, clock: Ticking, monkeypatch: pytest.MonkeyPatch, skew_s: float, host: str
) -> None:
    """Containers share host names, and a process number of one container is nobody's in another."""
    monkeypatch.setattr("socket.gethostname", lambda: host)
    skewed = Ticking()
    skewed.sleep(abs(skew_s))  # a clock cannot be set back: the other one is ahead
    if skew_s < 0:
        clock.sleep(2 * abs(skew_s))
    first = owner(files, skewed, replace(unseen(host), python=NOBODY, jvm=NOBODY))
    first.claim()
    clock.others = [first]
    with pytest.raises(Overtaken):
        owner(files, clock, replace(Driver.here(Process.of(os.getpid())), host=host)).claim()


def test_a_silent_driver_is_overtaken_and_learns_it(files: FolderFiles, clock: Ticking) -> None:
    first, second = owner(files, clock), owner(files, clock)
    first.claim()
    begun_s = clock.now()
    second.claim()
    assert FRESH_S <= clock.now() - begun_s <= FRESH_S + 2.0
    for act in (first.confirm, first.renew):
        with pytest.raises(Overtaken):
            act()
    second.renew()


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_batches_of_a_living_jvm_keep_others_out(files: FolderFiles, clock: Ticking, log: str) -> None:
    """A frozen Python renews nothing, and its JVM goes on."""
    owner(files, clock).claim()
    batches = iter(range(1000))
    clock.each = lambda: files.replace("v1", log, str(next(batches)))
    with pytest.raises(Overtaken):
        owner(files, clock).claim()
    clock.each = lambda: None
    owner(files, clock).claim()


def test_of_long_batches_a_sign_is_waited_for(files: FolderFiles, clock: Ticking) -> None:
    """With a batch every 20 s nothing changes for longer than a claim is fresh."""
    owner(files, clock).claim()
    for batch in range(5):
        files.replace("v1", "commits", str(batch))
        os.utime(Path(files.location) / "commits" / str(batch), (20.0 * batch, 20.0 * batch))
    begun_s = clock.now()
    owner(files, clock).claim()
    assert clock.now() - begun_s == pytest.approx(40.0, abs=2.0)


def test_a_look_that_takes_long_does_not_make_a_living_driver_stale(
    files: FolderFiles, clock: Ticking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of an object store may repeat a request for many seconds."""
    first = owner(files, clock)
    first.claim()
    read = files.text

    def slow(*names: str) -> str | None:
        text = read(*names)
        clock.sleep(FRESH_S + 1.0)
        return text

    monkeypatch.setattr(files, "text", slow)
    clock.each = lambda: files.replace(f"claim at {clock.now()}", *FOLDER, "1")
    with pytest.raises(Overtaken):
        owner(files, clock).claim()
    assert claims(files) == ["1"]


def test_a_driver_whose_processes_are_gone_is_not_waited_for(files: FolderFiles, clock: Ticking) -> None:
    owner(files, clock, replace(Driver.here(Process.of(os.getpid())), python=NOBODY, jvm=NOBODY)).claim()
    begun_s = clock.now()
    owner(files, clock, Driver.here(Process.of(os.getpid()))).claim()
    assert GONE_S <= clock.now() - begun_s <= GONE_S + 2.0


def test_a_process_with_the_number_of_another_is_not_taken_for_it() -> None:
    me = Process.of(os.getpid())
    assert me.state
    assert not replace(me, started="1").state
    assert not NOBODY.state


def test_a_python_that_is_stopped_over_a_living_jvm_is_not_dead(
    files: FolderFiles, clock: Ticking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when its batches take so long that nothing in the checkpoint changes."""
    python, jvm = Process(1, "1"), Process(2, "2")
    states = {python: "T", jvm: "S"}
    monkeypatch.setattr(Process, "state", property(lambda process: states.get(process, "S")))
    owner(files, clock, replace(Driver.here(Process.of(os.getpid())), python=python, jvm=jvm)).claim()
    with pytest.raises(Overtaken):
        owner(files, clock, Driver.here(Process.of(os.getpid()))).claim()
    states[jvm] = "T"  # the JVM is frozen, too
    owner(files, clock, Driver.here(Process.of(os.getpid()))).claim()


@pytest.mark.parametrize("start", ["nothing", "stale"])
def test_of_many_drivers_that_claim_at_once_one_succeeds(files: FolderFiles, start: str) -> None:
    from rheostat.clock import WallClock

    if start == "stale":
        files.create("nonsense", *FOLDER, "7")
    for _ in range(10):
        barrier, won, lost = threading.Barrier(4), list[Owner](), list[Exception]()

        def claim(barrier: threading.Barrier, won: list[Owner], lost: list[Exception]) -> None:
            one = owner(files, WallClock())
            number = max(map(int, claims(files)), default=0) + 1
            barrier.wait()
            try:
                if one._take(number):
                    won.append(one)
            except Exception as error:  # noqa: BLE001 - counted
                lost.append(error)

        threads = [threading.Thread(target=claim, args=(barrier, won, lost)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert lost == []
        assert len(won) == 1
        won[0].confirm()
        assert len(claims(files)) == 1


class Overwriting(FolderFiles):
    """A store that lets two drivers create one file: the second one replaces it."""

    def create(self, text: str, *names: str) -> bool:
        self.replace(text, *names)
        return True


def test_on_a_store_that_cannot_exclude_the_claim_is_read_again(tmp_path: Path, clock: Ticking) -> None:
    files = Overwriting(tmp_path)
    first, second = owner(files, clock), owner(files, clock)
    # The second one looked before the first one wrote, and writes after it.
    clock.each = lambda: files.create(second._text(), *FOLDER, "1")
    assert not first._take(1)
    clock.each = lambda: None
    second._number = 1
    second.confirm()


def test_a_slow_claim_with_an_older_number_loses(files: FolderFiles, clock: Ticking) -> None:
    first, slow = owner(files, clock), owner(files, clock)
    files.create("nonsense", *FOLDER, "3")
    clock.sleep(FRESH_S)
    first.look()
    clock.sleep(FRESH_S)
    first.claim()
    assert claims(files) == ["4"]
    assert not slow._take(3)
    assert claims(files) == ["4"]
    first.confirm()


def test_an_unreadable_claim_counts_until_it_is_stale(files: FolderFiles, clock: Ticking) -> None:
    """It may be half written."""
    files.create("", *FOLDER, "1")
    begun_s = clock.now()
    owner(files, clock).claim()
    assert FRESH_S <= clock.now() - begun_s <= FRESH_S + 2.0


def test_the_draft_of_a_renewal_counts_as_its_claim(files: FolderFiles, clock: Ticking) -> None:
    """Some stores delete the old file before they rename the new one."""
    files.create("half a cl", *FOLDER, ".3.5f0c-1b.tmp")
    begun_s = clock.now()
    owner(files, clock).claim()
    assert FRESH_S <= clock.now() - begun_s <= FRESH_S + 2.0
    assert claims(files) == ["4"]


def test_the_claim_is_renewed_by_its_own_thread_until_the_query_has_ended(
    files: FolderFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rheostat.clock import WallClock

    monkeypatch.setattr(owners, "RENEW_S", 0.01)
    monkeypatch.setattr(owners, "LOOK_S", 0.01)
    busy, one = threading.Event(), owner(files, WallClock())
    busy.set()
    one.claim()
    one.release(busy.is_set)  # the scaler ends, the query goes on
    before = one.look()
    while one.look().text == before.text:
        pass
    assert one._thread is not None
    assert one._thread.is_alive()
    busy.clear()
    one._thread.join(10)
    driver = one.look().driver
    assert driver is not None
    assert driver.ended


def test_a_store_that_fails_once_does_not_end_the_thread_and_a_take_over_does(
    files: FolderFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rheostat.clock import WallClock

    monkeypatch.setattr(owners, "RENEW_S", 0.01)
    lost: list[Overtaken] = []
    one = Owner(Checkpoint(files, lambda *_: None), unseen(), WallClock(), lost.append)
    one.claim()
    listing, failures = files.entries, iter([OSError("the store does not answer")] * 3)

    def entries(*names: str) -> object:
        for error in failures:
            raise error
        return listing(*names)

    files.entries = entries  # type: ignore[method-assign, assignment]
    before = files.text(*FOLDER, "1")
    while files.text(*FOLDER, "1") == before:
        pass
    assert not list(failures)
    files.create(
        Owner(Checkpoint(files, lambda *_: None), unseen("heir"), WallClock(), lost.append)._text(), *FOLDER, "2"
    )
    assert one._thread is not None
    one._thread.join(10)
    assert "on heir" in str(lost[0])
