"""Fetching jars: all or none, once, by one process at a time. Ivy is played by a script."""

import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest
from kafka_world import wait_until_gone

from rheostat.engine.spark.session.ivy import cache_folder
from rheostat.errors import EngineError, InvalidValue
from rheostat.kafka import jars as kafka_jars
from rheostat.kafka import pins
from rheostat.kafka.broker import Broker

FETCH = "from rheostat.kafka.jars import jar_set; jar_set().fetch(lambda text: print(text, flush=True))"


def jar_names() -> list[str]:
    made = [(kafka_jars.BROKER, "broker"), (kafka_jars.CONNECTOR, "connector")]
    return [f"{conf}/{name}-{version}.jar" for group, conf in made for _, name, version in group]


def play_ivy(machine: Path, script: str) -> None:
    """Put a Java there that does this in the place of Ivy, with `$to` where the jars belong."""
    java = machine / "home" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(f"""#!/bin/sh
[ "$1" = -version ] && {{ echo 'openjdk version "17.0.1"' >&2; exit; }}
echo "$@" > {machine}/arguments
for last; do :; done
to="${{last%%/\\[conf\\]*}}"
mkdir -p "$to/broker" "$to/connector"
{script}
""")
    java.chmod(0o755)


def all_jars() -> str:
    return "\n".join(f'echo jar > "$to/{name}"; echo "[SUCCESSFUL ] {name}"' for name in jar_names())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RHEOSTAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RHEOSTAT_IVY_SETTINGS", raising=False)
    monkeypatch.setattr(pins, "SHA256", dict.fromkeys(jar_names(), sha256(b"jar\n").hexdigest()))
    play_ivy(tmp_path, all_jars())
    return tmp_path


def kept(machine: Path) -> list[str]:
    """What the cache holds, but for the lock."""
    return sorted(path.name for path in (machine / "cache").iterdir() if path.suffix != ".lock")


def test_the_real_jars_are_there_and_a_second_fetch_starts_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rheostat.engine.spark.session.java.PLACES", {})  # whoever looks for Java gets an error
    names = {jar.name for jar in kafka_jars.broker_jars() + kafka_jars.connector_jars()}
    assert names >= {name.partition("/")[2] for name in jar_names()}


def test_jars_are_fetched_once_into_a_folder_of_their_versions(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kafka_jars.is_cached()
    found = kafka_jars.connector_jars()
    assert [f"connector/{jar.name}" for jar in found] == sorted(n for n in jar_names() if n.startswith("connector"))
    assert kafka_jars.is_cached()
    play_ivy(machine, "exit 1")
    assert kafka_jars.connector_jars() == found
    assert kept(machine) == [kafka_jars.jars_folder().name]
    monkeypatch.setattr(kafka_jars, "CONNECTOR", (("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.3.0"),))
    assert not kafka_jars.is_cached()


def test_a_killed_fetch_leaves_nothing_that_counts_and_nothing_that_runs(machine: Path) -> None:
    os.mkfifo(machine / "under-way")
    play_ivy(machine, f'echo jar > "$to/broker/half.jar"; echo $$ > {machine}/under-way; exec sleep 1000')
    child = subprocess.Popen([sys.executable, "-c", FETCH], stdout=subprocess.DEVNULL)
    ivy = int((machine / "under-way").read_text())  # waits until the script has come so far
    child.kill()
    child.wait()
    assert not kafka_jars.is_cached()
    wait_until_gone(ivy)
    play_ivy(machine, all_jars())
    folder = kafka_jars.jar_set().fetch()
    assert sorted(str(jar.relative_to(folder)) for jar in folder.rglob("*.jar")) == sorted(jar_names())
    assert kept(machine) == [folder.name]


def test_the_second_of_two_processes_waits_and_fetches_nothing(machine: Path) -> None:
    folder = kafka_jars.jars_folder()
    folder.parent.mkdir()
    play_ivy(machine, "exit 1")
    told: list[str] = []
    waits = threading.Event()

    def tell(text: str) -> None:
        told.append(text)
        waits.set()

    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=kafka_jars.jar_set().fetch, args=(tell,))
        second.start()
        assert waits.wait(60)
        for name in jar_names():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text("jar\n")
    second.join(60)
    assert not second.is_alive()
    assert told == ["waiting: another process fetches Kafka's jars"]
    assert not (machine / "arguments").exists()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'java.net.UnknownHostException: nowhere'; exit 1", "UnknownHostException: nowhere"),
        ("echo ':: UNRESOLVED DEPENDENCIES ::'; exit 0", "UNRESOLVED DEPENDENCIES"),
        ("exit 3", "Ivy printed nothing"),
    ],
)
def test_what_ivy_cannot_fetch_is_an_error_that_says_what_to_do(machine: Path, script: str, said: str) -> None:
    play_ivy(machine, script)
    with pytest.raises(EngineError, match=rf"could not be fetched \(.*{said}.*reaches Maven Central.*IVY_SETTINGS"):
        kafka_jars.jar_set().fetch()
    assert kept(machine) == [f"{kafka_jars.jars_folder().name}.log"]


def test_a_mirror_is_named_by_the_user_s_own_settings(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RHEOSTAT_IVY_SETTINGS", str(machine / "nowhere.xml"))
    with pytest.raises(InvalidValue, match=r"RHEOSTAT_IVY_SETTINGS is .*nowhere\.xml', which is not a file"):
        kafka_jars.jar_set().fetch()
    (machine / "nowhere.xml").write_text("<ivysettings/>")
    kafka_jars.jar_set().fetch()
    assert f"-settings {machine}/nowhere.xml" in (machine / "arguments").read_text()


def test_without_java_it_says_so(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rheostat.engine.spark.session.java.PLACES", {})
    with pytest.raises(EngineError, match="install Java 17 or newer"):
        kafka_jars.jar_set().fetch()


def test_a_cache_that_cannot_be_written_is_an_error(machine: Path) -> None:
    (machine / "cache").write_text("a file")
    with pytest.raises(EngineError, match="set RHEOSTAT_CACHE to another folder"):
        kafka_jars.jar_set().fetch()


def test_the_cache_is_the_user_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RHEOSTAT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "rheostat"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "rheostat"


def link_away(jar: Path) -> None:
    jar.unlink()
    jar.symlink_to("/dev/null")


BROKEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "another jar": (jar_names()[0], lambda jar: jar.write_text("another jar")),
    "a jar more": ("broker/aaa.jar", lambda jar: jar.write_text("jar\n")),
    "a jar less": (jar_names()[-1], Path.unlink),
    "another jar behind a link": (jar_names()[0], link_away),
}
"""What may be wrong -> the jar, and how it is made so."""


@pytest.mark.parametrize("what", BROKEN)
def test_a_jar_in_the_cache_that_is_not_the_pinned_one_is_deleted_and_refused(machine: Path, what: str) -> None:
    folder = kafka_jars.jar_set().fetch()
    name, spoil = BROKEN[what]
    spoil(folder / name)
    play_ivy(machine, "exit 1")
    for ask in (kafka_jars.connector_jars, kafka_jars.broker_jars):
        with pytest.raises(EngineError, match=rf"{Path(name).name}.*SHA-256") as refused:
            ask()
        assert "deleted" in str(refused.value)
        assert not folder.exists()
        play_ivy(machine, all_jars())
        kafka_jars.jar_set().fetch()
        spoil(folder / name)


@pytest.mark.parametrize(
    "script",
    [f'echo other > "$to/{jar_names()[0]}"', 'echo jar > "$to/broker/aaa.jar"', f'rm "$to/{jar_names()[-1]}"'],
)
def test_a_fetched_jar_that_is_not_the_pinned_one_is_deleted_and_refused(machine: Path, script: str) -> None:
    play_ivy(machine, f"{all_jars()}\n{script}")
    with pytest.raises(EngineError, match=r"SHA-256|could not be fetched"):
        kafka_jars.jar_set().fetch()
    assert not kafka_jars.is_cached()
    assert not list((machine / "cache").rglob("*.jar"))


def test_every_jar_that_is_fetched_by_name_is_pinned() -> None:
    assert set(jar_names()) <= set(pins.SHA256)
    assert all(len(digest) == 64 and int(digest, 16) for digest in pins.SHA256.values())
