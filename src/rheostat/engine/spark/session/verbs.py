"""What the driver's account may not do on Kubernetes, asked of the API server itself: without it no executor comes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.telemetry.reflect import read_field
from rheostat.errors import describe

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

VERBS = ("create", "get", "list", "watch", "delete", "deletecollection")
"""What Spark does to pods in client mode."""


def missing_verbs(context: SparkContext, verbs: Sequence[str] = VERBS) -> list[str]:
    """Return what the driver's account may not do to pods; [] where it may do everything, or is not on Kubernetes.

    Spark would stop the application after some failures, without a word about the account.
    """
    spark: Any = context._jsc
    jvm: Any = context._jvm
    backend = spark.sc().schedulerBackend()
    if not str(backend.getClass().getSimpleName()).startswith("Kubernetes"):
        return []
    from py4j.protocol import Py4JError

    try:
        return _ask(context, jvm, read_field(backend, "kubernetesClient"), verbs)
    except Py4JError as error:  # another Spark may have another client
        log.debug("the account's verbs are not known: %s", describe(error))
        return []


def _ask(context: SparkContext, jvm: Any, client: Any, verbs: Sequence[str]) -> list[str]:
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
