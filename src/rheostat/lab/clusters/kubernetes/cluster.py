"""Starts Kubernetes on this machine: etcd, API server, scheduler, quota controller, nodes whose pods are processes.

    python -m rheostat.lab.clusters.kubernetes.cluster [FOLDER]      # prints how to use it, and runs until Ctrl-C

The control plane is built from Go modules once: about ten minutes of CPU time, then it is in the cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rheostat.engine.spark.session.embedded import LOCALHOST
from rheostat.engine.spark.session.ivy import Notify, cache_folder, ignore
from rheostat.engine.spark.session.session import WORKER_PYTHON
from rheostat.errors import EngineError
from rheostat.lab.clusters.cluster import (
    CLIENT,
    Cluster,
    check_started,
    free_port,
    java_home,
    run_folder,
    show,
    start_logged,
    stop_all,
)
from rheostat.lab.clusters.kubernetes.api import Api, ApiError
from rheostat.lab.clusters.kubernetes.kubelet import Kubelet
from rheostat.lab.clusters.sparks import spark_home
from rheostat.lab.experiment.processes import await_true

SOURCES = Path(__file__).parent / "server"
START_S = 90.0
NAMESPACE, ACCOUNT = "spark", "rheostat-driver"
NODES, NODE_CORES, NODE_MB = 2, 2, 3000
RULES: tuple[dict[str, Any], ...] = (
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["create", "get", "list", "watch", "delete", "deletecollection"],
    },
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "deletecollection"]},
    {"apiGroups": [""], "resources": ["services", "persistentvolumeclaims"], "verbs": ["deletecollection"]},
)
"""What a driver in client mode may do."""


@dataclass(frozen=True)
class Kubernetes:
    """A running cluster, and who may do everything on it."""

    cluster: Cluster
    admin: Api
    nodes: tuple[Kubelet, ...]
    folder: Path

    def driver_token(self, account: str = ACCOUNT, namespace: str = NAMESPACE) -> str:
        """Return a token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        answer = self.admin.post(path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        return str(answer["status"]["token"])

    def used_verbs(self, account: str = ACCOUNT, namespace: str = NAMESPACE) -> set[tuple[str, str]]:
        """Return what an account has asked for so far: resources and verbs, by the API server's own audit log."""
        name, used = f"system:serviceaccount:{namespace}:{account}", set()
        for line in (self.folder / "audit.log").read_text().splitlines():
            event = json.loads(line)
            if event["user"].get("username") == name and "objectRef" in event:
                used.add((str(event["objectRef"]["resource"]), str(event["verb"])))
        return used


def is_built() -> bool:
    """Whether the cache has the control plane."""
    return _binary().exists()


def has_go() -> bool:
    """Whether the control plane can be built here, or has been."""
    return shutil.which("go") is not None or is_built()


def build(notify: Notify = ignore) -> Path:
    """Return the control plane's binary, built first if the cache has none."""
    binary = _binary()
    if binary.exists():
        return binary
    if shutil.which("go") is None:
        raise EngineError("Kubernetes is built by Go, which is not on the PATH: install Go 1.24 or newer")
    notify(f"building etcd, API server, scheduler and controllers into {binary}, once: about ten minutes of CPU time")
    binary.parent.mkdir(parents=True, exist_ok=True)
    draft = binary.with_name(f"{binary.name}.{os.getpid()}")
    done = subprocess.run(
        ["go", "build", "-mod=readonly", "-ldflags", "-s -w", "-o", str(draft), "."],
        cwd=SOURCES,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise EngineError(f"the control plane could not be built: {done.stderr.strip()[-800:]}")
    draft.replace(binary)
    return binary


def _binary() -> Path:
    sources = b"".join((SOURCES / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    return cache_folder() / f"kubernetes-{hashlib.sha256(sources).hexdigest()[:8]}" / "kubernetes"


@contextmanager
def kubernetes(folder: Path, executors_home: Path, nodes: int = NODES, notify: Notify = ignore) -> Iterator[Kubernetes]:
    """Start a control plane and its nodes, and an account for drivers; executors run the Spark of `executors_home`."""
    binary = str(build(notify))
    processes: list[subprocess.Popen[bytes]] = []
    store, peers, port = (free_port() for _ in range(3))
    token, log = secrets.token_hex(16), folder / "kubernetes.log"
    key, tokens = folder / "key.pem", folder / "tokens.csv"
    subprocess.run([binary, "key", str(key)], check=True)
    tokens.write_text(f'{token},admin,admin,"system:masters"\n')
    tokens.chmod(0o600)
    every = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
    (folder / "audit.json").write_text(json.dumps(every))
    with ExitStack() as undo:
        undo.callback(lambda: stop_all(processes[::-1]))
        processes.append(start_logged([binary, *_etcd(folder, store, peers)], log))
        processes.append(start_logged([binary, *_apiserver(folder, store, port, key, tokens)], log))
        certificate = folder / "certificates" / "apiserver.crt"
        admin = Api(f"https://{LOCALHOST}:{port}", token, certificate)
        check_started(await_true(lambda: _is_ready(admin), START_S), "the API server", log)
        config = folder / "kubeconfig.json"
        config.write_text(json.dumps(_kubeconfig(admin)))
        config.chmod(0o600)
        alone = (f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0")
        processes.append(start_logged([binary, "scheduler", *alone], log))
        # Of the controllers only the one that counts what a quota has given away.
        processes.append(start_logged([binary, "controllers", "--controllers=resourcequota-controller", *alone], log))
        for manifest in manifests():
            admin.apply(manifest)
        kubelets = tuple(
            Kubelet(admin, f"node-{number}", folder / f"node-{number}", executors_home, NODE_CORES, NODE_MB)
            for number in range(nodes)
        )
        os.environ.setdefault("JAVA_HOME", java_home())
        for kubelet in kubelets:
            undo.callback(kubelet.stop)
            kubelet.start()
        token_file = folder / "driver-token"
        conf = {
            **CLIENT,
            WORKER_PYTHON: sys.executable,
            "spark.kubernetes.namespace": NAMESPACE,
            "spark.kubernetes.container.image": "none",
            "spark.kubernetes.authenticate.caCertFile": str(certificate),
            "spark.kubernetes.authenticate.oauthTokenFile": str(token_file),
            "spark.kubernetes.executor.request.cores": "1",
            "spark.executor.memoryOverhead": "200m",
        }
        started = Kubernetes(Cluster(f"k8s://{admin.url}", conf), admin, kubelets, folder)
        token_file.write_text(started.driver_token())
        token_file.chmod(0o600)
        yield started


def manifests(rules: tuple[dict[str, Any], ...] = RULES, account: str = ACCOUNT) -> Iterator[Mapping[str, Any]]:
    """Yield a namespace with an account that may do what a driver does."""
    inside = {"namespace": NAMESPACE}
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    # Pods get the default account, which a controller manager would make.
    for name in ("default", account):
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, **inside}}
    group = "rbac.authorization.k8s.io"
    yield {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": {"name": account, **inside}, "rules": list(rules)}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": account, **inside},
        "subjects": [{"kind": "ServiceAccount", "name": account, **inside}],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": account},
    }


def _etcd(folder: Path, store: int, peers: int) -> list[str]:
    url, peer = f"http://{LOCALHOST}:{store}", f"http://{LOCALHOST}:{peers}"
    return [
        "etcd",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def _apiserver(folder: Path, store: int, port: int, key: Path, tokens: Path) -> list[str]:
    return [
        "apiserver",
        f"--etcd-servers=http://{LOCALHOST}:{store}",
        f"--bind-address={LOCALHOST}",
        f"--advertise-address={LOCALHOST}",
        f"--secure-port={port}",
        f"--cert-dir={folder / 'certificates'}",
        "--service-cluster-ip-range=10.0.0.0/24",
        f"--service-account-issuer=https://{LOCALHOST}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        f"--token-auth-file={tokens}",
        "--authorization-mode=RBAC",
        "--endpoint-reconciler-type=none",
        f"--audit-policy-file={folder / 'audit.json'}",
        f"--audit-log-path={folder / 'audit.log'}",
    ]


def _is_ready(api: Api) -> bool:
    try:
        return bool(api.get("/api/v1/namespaces/default"))
    except (ApiError, OSError):
        return False


def _kubeconfig(api: Api) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": api.url, "certificate-authority": str(api.certificate)}}],
        "users": [{"name": "admin", "user": {"token": api.token}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "admin"}}],
        "current-context": "here",
    }


def load_manifests(file: Path) -> list[Mapping[str, Any]]:
    """Read the objects of a YAML file."""
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


def main() -> None:
    """Run a cluster for a person."""
    with kubernetes(run_folder("rheostat-kubernetes-"), spark_home(None), notify=print) as started:
        kubectl = f"kubectl --kubeconfig {started.folder / 'kubeconfig.json'} -n {NAMESPACE} get pods\n\n"
        show(started.cluster, f"Kubernetes runs: {NODES} nodes of {NODE_CORES} cores and {NODE_MB} MB", kubectl)


if __name__ == "__main__":
    main()
