"""Settings that silence Spark's log, for commands that draw on the terminal."""

from __future__ import annotations

from pathlib import Path

from rheostat.engine.spark.session.session import QUICK_START

NO_LOG = """status = off
rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
logger.repl.name = org.apache.spark.api.python.PythonGatewayServer
logger.repl.level = off
"""
"""Log4j configuration. Spark replaces one without an appender, and raises the root's level to the gateway's."""


def quiet(folder: Path) -> dict[str, str]:
    """Return settings with which Spark writes nothing to the terminal; the log4j configuration goes into `folder`."""
    logging = folder / "log4j2.properties"
    logging.write_text(NO_LOG)
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"{QUICK_START} -Dlog4j2.configurationFile={logging}",
    }
