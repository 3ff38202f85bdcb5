"""Why no executor comes on Kubernetes: what the driver's account may not do, asked of the API server itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.telemetry.reflect import read_field

if TYPE_CHECKING:
    from pyspark import SparkContext

VERBS = ("create", "get", "list", "watch", "delete", "deletecollection")
"""What Spark does to pods in client mode."""


def missing_verbs(context: SparkContext, verbs: Sequence[str] = VERBS) -> list[str]:
    """Return what the driver's account may not do to pods; [] where it may do everything, or is not on Kubernetes."""
    spark: Any = context._jsc
    jvm: Any = context._jvm
    backend = spark.sc().schedulerBackend()
    if not str(backend.getClass().getSimpleName()).startswith("Kubernetes"):
        return []
    client = read_field(backend, "kubernetesClient")
    namespace = str(context.getConf().get("spark.kubernetes.namespace") or "default")
    reviews = client.authorization().v1().selfSubjectAccessReview()
    model = jvm.io.fabric8.kubernetes.api.model.authorization.v1
    missing = []
    for verb in verbs:
        spec = model.SelfSubjectAccessReviewBuilder().withNewSpec().withNewResourceAttributes()
        asked = spec.withNamespace(namespace).withResource("pods").withVerb(verb).endResourceAttributes().endSpec()
        if not bool(reviews.create(asked.build()).getStatus().getAllowed()):
            missing.append(verb)
    return missing
