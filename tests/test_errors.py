"""A password, a key or a token of a setting is in no error, log, journal record, page or repr."""

from __future__ import annotations

import logging
import pickle
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
from loop_world import JOB, Scripted, World

from rheostat.cli.display import logs
from rheostat.cli.main import run
from rheostat.engine.spark.pipeline import Topic
from rheostat.engine.spark.session.session import _same_or_refuse, session_settings
from rheostat.errors import EngineError, InvalidValue
from rheostat.job.decision import Decision
from rheostat.job.frozen import to_json
from rheostat.job.record import Run
from rheostat.report.journal_page import journal_page
from rheostat.testing.engine import Failing

SECRET = "hunter2"
URL = f"postgresql://scaler:{SECRET}@db.example/journal"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{SECRET}";'
POLICY = """
from dataclasses import dataclass
from typing import ClassVar
from rheostat.job.decision import Decision
from rheostat.ports import Policy

@dataclass(frozen=True)
class Remote(Policy[None]):
    name: ClassVar[str] = "remote"
    api_token: int = 0
"""


FILES = {
    "settings as text": f"pipeline: a:b\nconf: spark.hadoop.fs.s3a.secret.key={SECRET}\n",
    "settings as a list": f"pipeline: a:b\nconf: [spark.x=1, 'kafka.ssl.key.password={SECRET}']\n",
    "settings of settings": f"pipeline: a:b\nslo: {{a.password: {SECRET}, max_lag_s: {{b.password: {SECRET}}}}}\n",
    "jaas as an option": f"pipeline: a:b\nmaster: {{kafka.sasl.jaas.config: '{JAAS}'}}\n",
    "journal instead of a number": f"pipeline: a:b\nseconds: {URL}\n",
    "a password in the place of a pipeline": f"pipeline: password={SECRET}\n",
    "a file that is one text": f"journal={URL}\n",
    "an alias": f"pipeline: a:b\nconf: {{spark.password: *{SECRET}}}\n",
    "a tag": f"pipeline: a:b\nconf: {{spark.password: !{SECRET} x}}\n",
    "an option of a policy": f"pipeline: a:b\npolicy: {{name: POLICY, api_token: {SECRET}}}\n",
}


@pytest.mark.parametrize("what", FILES)
def test_a_run_file_that_is_refused(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "remote.py").write_text(POLICY)
    (tmp_path / "a.py").write_text("def b(allocation): pass")
    file = tmp_path / "run.yaml"
    file.write_text(FILES[what].replace("POLICY", str(tmp_path / "remote.py")))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        assert run(["run", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert SECRET not in said


ARGUMENTS = {
    "no equals sign": ("--conf", f"spark.kafka.ssl.keystore.password:{SECRET}"),
    "an option without equals sign": ("--option", f"token:{SECRET}"),
    "a setting without equals sign": ("--set", f"journal:{URL}"),
    "a key below a journal": ("--set", f"journal={URL}", "--set", "journal.path=1"),
    "no YAML": ("--set", f"conf={{spark.password: {SECRET}"),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_a_command_line_that_is_refused(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", "a:b", *ARGUMENTS[what]]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert SECRET not in said


def test_settings_of_a_session() -> None:
    for wrong in ({"spark.hadoop.fs.s3a.secret.key": [SECRET]}, {"spark.x.password": (SECRET,)}):
        with pytest.raises(InvalidValue, match=r"Spark settings are strings") as refused:
            session_settings("local-cluster[2,1,512]", conf=wrong)  # type: ignore[arg-type]
        assert SECRET not in str(refused.value)


def test_settings_that_differ_from_those_of_a_running_session(monkeypatch: pytest.MonkeyPatch) -> None:
    class Conf:
        def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - Spark's name
            return [("spark.hadoop.fs.s3a.secret.key", SECRET)]

    class Context:
        def getConf(self) -> Conf:  # noqa: N802 - Spark's name
            return Conf()

    monkeypatch.setattr("rheostat.engine.spark.session.session.classic_context", lambda _: Context())
    with pytest.raises(InvalidValue, match=r"Different: spark.hadoop.fs.s3a.secret.key") as refused:
        _same_or_refuse(None, {"spark.hadoop.fs.s3a.secret.key": f"{SECRET}-new"})  # type: ignore[arg-type]
    assert SECRET not in str(refused.value)


TEXTS = {
    "a URL": f"connection to {URL} failed",
    "a URL with an @ in its password": f"connection to postgresql://u:x@{SECRET}@host/db failed",
    "jaas": f"kafka.sasl.jaas.config={JAAS}",
    "jaas in a mapping": str({"kafka.sasl.jaas.config": JAAS}),
    "s3a": f"fs.s3a.access.key -> x, spark.hadoop.fs.s3a.secret.key={SECRET}, and more",
    "a mapping": str({"spark.a": "1", "spark.ssl.keyPassword": SECRET}),
    "json": f'{{"token": "{SECRET}"}}',
    "a query": f"GET https://host/path?access_token={SECRET}&x=1",
    "an environment variable": f"AWS_SECRET_ACCESS_KEY={SECRET} AWS_SESSION_TOKEN='{SECRET}'",
}


@pytest.mark.parametrize("what", TEXTS)
def test_an_engine_that_raises(what: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its text is logged, journaled, and shown as a step's problem."""
    for call in ("observe", "apply"):
        caplog.clear()
        world = World(Scripted((7,)), spoil=partial(Failing, times={call: 1}, error=lambda: RuntimeError(TEXTS[what])))
        step = world.step()
        assert "redacted" in caplog.text
        for shown in (caplog.text, str(step.problem), str(step.observation.problem), journaled(world)):
            assert SECRET not in shown


@pytest.mark.parametrize("what", TEXTS)
def test_a_policy_that_raises(what: str, caplog: pytest.LogCaptureFixture) -> None:
    @dataclass(frozen=True)
    class Broken(Scripted):
        def decide(self, situation: Any) -> Decision:
            raise RuntimeError(TEXTS[what])

    world = World(Broken())
    step = world.step()
    for shown in (caplog.text, step.decision.sentence, str(step.policy_failure), journaled(world)):
        assert "redacted" in shown
        assert SECRET not in shown


def journaled(world: World) -> str:
    return "\n".join(to_json(record) for record in world.records())


@pytest.mark.parametrize("as_json", [False, True])
def test_a_traceback_in_the_log_of_a_command(as_json: bool, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(verbose=True, as_json=as_json)
    try:
        raise RuntimeError(f"cannot connect to {URL}")
    except RuntimeError:
        logging.getLogger("rheostat.test").warning("failed with %s", {"password": SECRET}, exc_info=True)
    finally:
        logging.getLogger("rheostat").handlers.clear()
        logging.getLogger("rheostat").setLevel(logging.NOTSET)
    said = capsys.readouterr().err
    assert "RuntimeError: cannot connect to" in said
    assert SECRET not in said


def test_settings_in_the_journal_and_on_the_page() -> None:
    @dataclass(frozen=True)
    class Remote(Scripted):
        name: ClassVar[str] = "remote"
        api_token: str = ""

    world = World(
        Remote(api_token=SECRET),
        settings={"engine": "spark", "conf": {"spark.ssl.keyPassword": SECRET, "spark.a": "1"}, "journal": URL},
    )
    world.step()
    (first,) = (record for record in world.records() if isinstance(record, Run))
    settings = to_json(first.settings)
    assert SECRET not in settings
    assert '"spark.a":"1"' in settings
    page = journal_page(world.journal, JOB)
    assert "api_token" in page
    assert SECRET not in page


def test_the_settings_that_an_oracle_is_rebuilt_from_stay() -> None:
    """Names of operators and sources are keys, too; what is no text is no secret."""
    settings = {"job": {"sources": {"tokens": 5.0}, "operators": {"secrets": {"quantum": 2}}}}
    world = World(Scripted(), settings=settings)
    (first,) = (record for record in world.records() if isinstance(record, Run))
    assert first.settings == settings


def test_reprs() -> None:
    from rheostat.api.launch import Request
    from rheostat.config.run_file import RunFile

    options = {"kafka.sasl.jaas.config": JAAS}
    file = RunFile("a:b", {"api_token": SECRET}, conf={"spark.ssl.keyPassword": SECRET}, journal=URL)
    request = Request.of(None, "static", URL, False, None)
    for item in (file, request, Topic("source", "host:9092", "clicks", options)):
        assert SECRET not in repr(item)


def test_an_error_that_travels_between_processes_stays_as_it_is() -> None:
    error = EngineError(f"{URL} password={SECRET}")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    "text",
    [
        "wanted tokenize=7 secrets=3, runs tokenize=5 secrets=3",
        "job 'x' was taken over by 'h' (token 5); 'g' had token 4 and must stop",
        "master 'spark://here:7077' is unknown",
        "Kafka at host:9092 has no topic 'clicks'",
        "spark://CoarseGrainedScheduler@host:4000 is gone",
        "write postgresql://user:password@host:5432/database",
        "unknown key 'password', known: journal, token",
    ],
)
def test_text_without_a_secret_stays(text: str) -> None:
    assert str(InvalidValue(text)) == text
