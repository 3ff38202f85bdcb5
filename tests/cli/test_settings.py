"""`rheostat settings`: the lines, for each master, as they are pasted into spark-submit."""

from __future__ import annotations

import json
import shlex
import subprocess
from itertools import pairwise

import pytest

from rheostat.engine.spark.session.settings import attach_settings, check_application, missing_settings
from rheostat.errors import InvalidValue

from .conftest import Command


def pasted(page: str) -> tuple[list[str], dict[str, str]]:
    """What spark-submit gets of the page, as a shell reads it: all arguments, and the settings among them."""
    printed = subprocess.run(
        ["bash", "-c", 'spark-submit() { printf "%s\\0" "$@"; }\n' + page], capture_output=True, text=True, check=True
    )
    arguments = printed.stdout.split("\0")[:-1]
    values = [value for option, value in pairwise(arguments) if option == "--conf"]
    return arguments, dict(value.split("=", 1) for value in values)


@pytest.mark.parametrize("master", ["spark://here:7077", "yarn", "k8s://https://here:443", "local-cluster[3,2,600]"])
def test_the_page_is_a_command_with_all_that_is_needed(rheostat: Command, master: str) -> None:
    ended = rheostat("settings", "--master", master)
    assert ended.code == 0
    arguments, conf = pasted(ended.out)
    assert arguments[:2] == ["--master", master]
    assert arguments[-1] == "JOB.py"
    assert missing_settings(conf) == ()
    assert conf == {line.key: line.value for line in attach_settings(master)}
    assert all(f"#   {key}\n#     " in ended.out for key in conf)


def test_the_numbers_follow_the_size(rheostat: Command) -> None:
    size = ("--min-executors", 2, "--max-executors", 6, "--cores", 4)
    _, standalone = pasted(rheostat("settings", "--master", "spark://here:7077", *size).out)
    assert (standalone["spark.cores.max"], standalone["spark.executor.cores"]) == ("24", "4")
    assert standalone["spark.sql.shuffle.partitions"] == "48"
    assert "spark.executor.instances" not in standalone
    _, yarn = pasted(rheostat("settings", "--master", "yarn", *size).out)
    assert (yarn["spark.executor.instances"], yarn["spark.executor.failuresValidityInterval"]) == ("2", "1h")
    assert "spark.cores.max" not in yarn
    assert not any("standalone" in key for key in yarn)


def test_without_a_master_it_is_a_cluster_on_this_machine(rheostat: Command) -> None:
    arguments, conf = pasted(rheostat("settings").out)
    assert arguments[1] == "local-cluster[4,1,512]"
    assert (conf["spark.executor.memory"], conf["spark.sql.shuffle.partitions"]) == ("512m", "8")


def test_the_refusal_of_autoscale_ends_with_the_same_lines(rheostat: Command) -> None:
    page = rheostat("settings", "--master", "yarn").out.splitlines()
    with pytest.raises(InvalidValue) as refused:
        check_application("yarn", {"spark.dynamicAllocation.enabled": "true", "spark.task.maxFailures": "1"})
    reasons, _, last = str(refused.value).partition(":\n--conf ")
    lines = [line.removesuffix(" \\") for line in f"--conf {last}".splitlines()]
    assert [shlex.split(line)[1].split("=")[0] for line in lines] == [
        "spark.dynamicAllocation.enabled",
        "spark.stage.maxConsecutiveAttempts",
        "spark.task.maxFailures",
        "spark.executor.cores",
        "spark.executor.maxNumFailures",
    ]
    assert set(lines) <= {line.removesuffix(" \\") for line in page}
    assert "spark.task.maxFailures is '1', it must be 4 or more" in reasons


def test_json_has_a_row_for_each_setting(rheostat: Command) -> None:
    ended = rheostat("settings", "--master", "yarn", "--json", "-")
    rows = json.loads(ended.out)
    assert [row["key"] for row in rows] == [line.key for line in attach_settings("yarn")]
    assert set(rows[0]) == {"key", "value", "needed", "why"}
    assert "spark-submit" in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--master", "local[*]"), "has no executors to add or remove: use local-cluster"),
        (("--master", "mesos://here"), "master 'mesos://here' is unknown"),
        (("--min-executors", "5", "--max-executors", "2"), "min_executors is 5 and max_executors is 2"),
        (("--max-executors", "many"), "--max-executors must be a number, not 'many'"),
        (("--cores", "0"), "--cores must be a finite number, at least 1; it is 0"),
    ],
)
def test_what_is_refused(rheostat: Command, arguments: tuple[str, ...], message: str) -> None:
    ended = rheostat("settings", *arguments)
    assert ended.code == 2
    assert message in ended.err
