"""YARN on this machine: Hadoop's MiniYARNCluster, a real resource manager with node managers in one JVM.

    python -m rheostat.lab.clusters.yarn [FOLDER]      # starts it, prints how to use it, and runs until Ctrl-C

Its jars are those of the newest PySpark, which has most of Hadoop, and a few that are fetched once (`yarn_pins.py`).
Executors are containers: processes below that JVM.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rheostat.engine.spark.session.embedded import environment
from rheostat.engine.spark.session.ivy import Dependency, JarSet, Notify, ignore
from rheostat.engine.spark.session.java import find_java
from rheostat.engine.spark.session.session import QUICK_START, WORKER_PYTHON
from rheostat.lab.clusters.cluster import CLIENT, Cluster, java_home, run_folder, show
from rheostat.lab.clusters.sparks import NEWEST, pyspark_folder, spark_home
from rheostat.lab.clusters.yarn_pins import SHA256

HADOOP = "3.5.0"
"""The Hadoop of the newest PySpark."""
JARS = (
    ("org.apache.hadoop", "hadoop-client-minicluster", HADOOP),
    ("junit", "junit", "4.13.2"),
    ("org.hamcrest", "hamcrest-core", "1.3"),
    ("org.junit.jupiter", "junit-jupiter-api", "5.10.2"),
    ("org.junit.platform", "junit-platform-commons", "1.10.2"),
    ("org.opentest4j", "opentest4j", "1.3.0"),
    ("org.apiguardian", "apiguardian-api", "1.1.2"),
    ("org.assertj", "assertj-core", "3.25.3"),
    ("org.bouncycastle", "bcprov-jdk18on", "1.78.1"),
    ("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"),
    ("org.bouncycastle", "bcutil-jdk18on", "1.78.1"),
)
OPENS = ("java.lang", "java.util", "java.net", "java.io", "java.nio", "java.security", "java.util.concurrent")
NODES, NODE_MB, NODE_CORES = 2, 3000, 4
NARROW = "narrow"
"""A queue with half of the cluster and no more; the default queue may have all of it."""
SETTINGS: Mapping[str, object] = {
    "fs.defaultFS": "file:///",
    "yarn.scheduler.minimum-allocation-mb": 128,
    "yarn.nodemanager.resource.memory-mb": NODE_MB,
    "yarn.nodemanager.resource.cpu-vcores": NODE_CORES,
    "yarn.minicluster.yarn.nodemanager.resource.memory-mb": NODE_MB,
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.scheduler.capacity.maximum-am-resource-percent": 0.8,
    "yarn.scheduler.capacity.root.queues": f"default,{NARROW}",
    "yarn.scheduler.capacity.root.default.capacity": 50,
    "yarn.scheduler.capacity.root.default.maximum-capacity": 100,
    "yarn.scheduler.capacity.root.default.user-limit-factor": 2,
    f"yarn.scheduler.capacity.root.{NARROW}.capacity": 50,
    f"yarn.scheduler.capacity.root.{NARROW}.maximum-capacity": 50,
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
    # A restarted driver is a new application: the old one must not keep its room for long. An application master on a
    # loaded machine needs half a minute to register.
    "yarn.am.liveness-monitor.expiry-interval-ms": 60_000,
}


def jar_set() -> JarSet:
    """Return what PySpark lacks of a mini cluster."""
    return JarSet(
        name="yarn",
        version=HADOOP,
        whose="YARN's",
        contents="a YARN mini cluster (about 60 MB)",
        remedy="run `make yarn`",
        dependencies=tuple(Dependency(*one, group="cluster") for one in JARS),
        sha256=SHA256,
    )


@contextmanager
def yarn(folder: Path, executors_home: Path, notify: Notify = ignore) -> Iterator[Cluster]:
    """Start a resource manager and two node managers; executors run the Spark of `executors_home`."""
    from py4j.java_gateway import JavaGateway

    home = spark_home(pyspark_folder(NEWEST, notify))
    jars = [
        *jar_set().jars("cluster", notify),
        *(jar for jar in sorted((home / "jars").glob("*.jar")) if not jar.name.startswith(("spark-", "hive-"))),
    ]
    [py4j] = (home / "jars").glob("py4j-*.jar")
    log = (folder / "yarn.log").open("a")
    with environment({"JAVA_HOME": java_home()}):
        gateway = JavaGateway.launch_gateway(
            jarpath=str(py4j),
            classpath=":".join(map(str, jars)),
            javaopts=[
                "-Xmx700m",
                *QUICK_START.split(),
                *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENS),
            ],
            die_on_exit=True,
            java_path=find_java().path,
            redirect_stdout=log,
            redirect_stderr=log,
            cwd=str(folder),
        )
    try:
        cluster = _start(gateway.jvm)
        conf = folder / "conf"
        conf.mkdir(exist_ok=True)
        for name in ("yarn-site.xml", "core-site.xml"):
            stream = gateway.jvm.java.io.FileOutputStream(str(conf / name))
            cluster.getConfig().writeXml(stream)
            stream.close()
        yield Cluster(
            "yarn",
            {
                **CLIENT,
                "spark.yarn.am.extraJavaOptions": QUICK_START,
                WORKER_PYTHON: sys.executable,
                "spark.yarn.jars": f"local:{executors_home}/jars/*",
                "spark.yarn.am.memory": "512m",
                "spark.executor.memoryOverhead": "200m",
                "spark.yarn.stagingDir": f"file://{folder}/staging",
            },
            {"HADOOP_CONF_DIR": str(conf), "YARN_CONF_DIR": str(conf), "JAVA_HOME": java_home()},
        )
    finally:
        gateway.shutdown()
        gateway.java_process.kill()
        gateway.java_process.stdin.close()
        gateway.java_process.wait()
        log.close()


def _start(jvm: Any) -> Any:
    conf = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
    for key, value in SETTINGS.items():
        conf.set(key, str(value))
    cluster = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("rheostat", NODES, 1, 1)
    cluster.init(conf)
    cluster.start()
    return cluster


def main() -> None:
    """Run a cluster for a person."""
    with yarn(run_folder("rheostat-yarn-"), spark_home(None), notify=print) as cluster:
        show(cluster, f"YARN runs: {NODES} nodes of {NODE_MB} MB and {NODE_CORES} cores")


if __name__ == "__main__":
    main()
