"""A kubelet for tests: a node whose pods are processes.

It does what Spark needs of one: registers its node, runs the pods that the scheduler puts there, reports their state,
and ends them when they are deleted. A container is an executor of Spark, with the command line of Spark's own image.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from rheostat.errors import describe
from rheostat.lab.clusters.kubernetes.api import Api, ApiError

log = logging.getLogger(__name__)

POLL_S = 0.1
WATCH_S = 60
GRACE_S = 5.0
"""Seconds that a deleted pod has after SIGTERM; a pod may ask for less."""
ADDRESSES = count(1)
"""Each pod gets an address of the loopback network."""


@dataclass
class Running:
    """A pod with its process."""

    process: subprocess.Popen[bytes]
    address: str
    ending_s: float | None = None
    """When it is killed, once it is deleted."""


class Kubelet:
    """One node."""

    def __init__(self, api: Api, name: str, folder: Path, spark_home: Path, cores: int, memory_mb: int) -> None:
        self.api, self.name, self.folder, self.spark_home = api, name, folder, spark_home
        self.cores, self.memory_mb = cores, memory_mb
        self.slow_s = 0.0
        """Seconds that a pod waits before it starts, as for a large image."""
        self._pods: dict[str, Running] = {}
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._forever, args=(work,), name=f"kubelet-{name}", daemon=True)
            for work in (self._watch, self._look)
        ]
        self._lock = threading.Lock()

    def start(self) -> None:
        """Register the node, and begin to run its pods."""
        self.register()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Kill all pods."""
        self._ended.set()
        with self._lock:
            for running in self._pods.values():
                running.process.kill()

    def register(self) -> None:
        """Create the node, and mark it as ready."""
        size = {"cpu": str(self.cores), "memory": f"{self.memory_mb}Mi", "pods": "50"}
        self.api.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name}})
        now = _now()
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "Started",
            "message": "pods are processes",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        status = {"capacity": size, "allocatable": size, "conditions": [ready]}
        self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": status})
        # The API server marks a new node as not ready, and only a controller manager would remove that.
        self.api.patch(f"/api/v1/nodes/{self.name}", {"spec": {"taints": None}}, "application/merge-patch+json")

    def _forever(self, work: Any) -> None:
        while not self._ended.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 - a kubelet goes on, whatever one request did
                if not self._ended.is_set():
                    log.debug("kubelet %s: %s", self.name, describe(error))
                    time.sleep(POLL_S)

    # -- what is wanted ----------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Follow the pods of this node."""
        mine = f"/api/v1/pods?fieldSelector=spec.nodeName={self.name}"
        listed = self.api.get(mine)
        for pod in listed["items"]:
            self._heed(pod)
        version = listed["metadata"]["resourceVersion"]
        for kind, pod in self.api.watch(f"{mine}&resourceVersion={version}", WATCH_S):
            if self._ended.is_set():
                return
            if kind == "ERROR":
                return  # too old a version: list again
            if kind == "DELETED":
                self._end(_path(pod), 0.0)
            else:
                self._heed(pod)

    def _heed(self, pod: Mapping[str, Any]) -> None:
        path = _path(pod)
        if "deletionTimestamp" in pod["metadata"]:
            self._end(path, min(GRACE_S, float(pod["metadata"].get("deletionGracePeriodSeconds", GRACE_S))))
            with self._lock:
                gone = path not in self._pods
            if gone:
                self.api.delete(path, 0)
            return
        with self._lock:
            known = path in self._pods
        if not known and pod["status"].get("phase", "Pending") == "Pending":
            threading.Thread(target=self._run, args=(pod, path), daemon=True).start()

    def _run(self, pod: Mapping[str, Any], path: str) -> None:
        """Start a pod's process, unless the pod is gone by then."""
        time.sleep(self.slow_s)
        with self._lock:
            if path in self._pods or self._ended.is_set():
                return
            try:
                if self.slow_s and "deletionTimestamp" in self.api.get(path)["metadata"]:
                    return
            except ApiError:
                return
            number = next(ADDRESSES)
            address = f"127.1.{number // 250}.{number % 250 + 1}"
            self._pods[path] = Running(self._start(pod, address), address)
        status = {"state": {"running": {"startedAt": _now()}}, "ready": True, "started": True}
        with suppress(ApiError):  # deleted meanwhile: `_heed` ends it
            self._report(pod, path, "Running", address, status)

    def _start(self, pod: Mapping[str, Any], address: str) -> subprocess.Popen[bytes]:
        [container] = pod["spec"]["containers"]
        folder = self.folder / pod["metadata"]["name"]
        for part in ("local", "conf"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        values = _environment(container, pod, address)
        values |= {"SPARK_LOCAL_DIRS": str(folder / "local"), "SPARK_CONF_DIR": str(folder / "conf")}
        values["SPARK_HOME"] = str(self.spark_home)
        command = container.get("command") or executor_command(values, self.spark_home)
        with (folder / "log").open("ab") as output:
            return subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **values},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    # -- what is -------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Report processes that have ended, and kill those of deleted pods whose time is over."""
        with self._lock:
            pods = dict(self._pods)
        for path, running in pods.items():
            code = running.process.poll()
            if code is not None:
                with self._lock:
                    del self._pods[path]
                self._ended_pod(path, running, code)
            elif running.ending_s is not None and time.monotonic() > running.ending_s:
                running.process.kill()
        time.sleep(POLL_S)

    def _ended_pod(self, path: str, running: Running, code: int) -> None:
        if running.ending_s is not None:
            self.api.delete(path, 0)
            return
        exit_code = code if code >= 0 else 128 - code
        ended = {"exitCode": exit_code, "reason": "Completed" if code == 0 else "Error", "finishedAt": _now()}
        with suppress(ApiError):
            pod = self.api.get(path)
            phase = "Succeeded" if code == 0 else "Failed"
            status = {"state": {"terminated": ended}, "ready": False, "started": False}
            self._report(pod, path, phase, running.address, status)

    def _end(self, path: str, grace_s: float) -> None:
        with self._lock:
            running = self._pods.get(path)
            if running is not None and running.ending_s is None:
                running.ending_s = time.monotonic() + grace_s
                with suppress(ProcessLookupError):
                    os.killpg(running.process.pid, signal.SIGTERM)

    def _report(
        self, pod: Mapping[str, Any], path: str, phase: str, address: str, container: Mapping[str, Any]
    ) -> None:
        [wanted] = pod["spec"]["containers"]
        about = {"name": wanted["name"], "image": wanted["image"], "imageID": "process", "restartCount": 0}
        status = {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "127.0.0.1",
            "startTime": _now(),
            "containerStatuses": [{**about, **container}],
        }
        self.api.patch(f"{path}/status", {"status": status})


def executor_command(values: Mapping[str, str], spark_home: Path) -> list[str]:
    """Return the command of an executor, as the entry point of Spark's image builds it."""
    numbered = sorted((key for key in values if key.startswith("SPARK_JAVA_OPT_")), key=lambda key: int(key[15:]))
    return [
        f"{values.get('JAVA_HOME') or os.environ['JAVA_HOME']}/bin/java",
        *(values[key] for key in numbered),
        f"-Xms{values['SPARK_EXECUTOR_MEMORY']}",
        f"-Xmx{values['SPARK_EXECUTOR_MEMORY']}",
        "-cp",
        f"{spark_home}/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", values["SPARK_DRIVER_URL"]),
        *("--executor-id", values["SPARK_EXECUTOR_ID"]),
        *("--cores", values["SPARK_EXECUTOR_CORES"]),
        *("--app-id", values["SPARK_APPLICATION_ID"]),
        *("--hostname", values["SPARK_EXECUTOR_POD_IP"]),
        *("--resourceProfileId", values["SPARK_RESOURCE_PROFILE_ID"]),
        *("--podName", values["SPARK_EXECUTOR_POD_NAME"]),
    ]


def _environment(container: Mapping[str, Any], pod: Mapping[str, Any], address: str) -> dict[str, str]:
    """Return a container's environment variables; fields of the pod are filled in."""
    fields = {"status.podIP": address, "metadata.name": pod["metadata"]["name"]}
    values = {}
    for entry in container.get("env", []):
        reference = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        value = fields.get(reference, "") if reference else entry.get("value", "")
        if value:
            values[entry["name"]] = value
    return values


def _path(pod: Mapping[str, Any]) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
