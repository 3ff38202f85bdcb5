"""Hadoop's S3A file system for PySpark's own Hadoop: its jars (12 MB, fetched once, pinned) and its settings.

hadoop-aws asks for the AWS SDK's bundle of 600 MB. S3A uses its modules `s3` and `s3-transfer-manager`, and loads a class of
the Analytics Accelerator when it starts. Netty, SLF4J and Apache's HTTP client are PySpark's own.
"""

# ruff: noqa: E501 - a hash has one line

from __future__ import annotations

from collections.abc import Mapping

from rheostat.engine.spark.session.ivy import Dependency, JarSet

HADOOP, SDK = "3.5.0", "2.35.4"
"""The version of PySpark's hadoop-client-api, and the SDK that this Hadoop was built with."""
SHA256: Mapping[str, str] = {
    "cloud/spark-hadoop-cloud_2.13-4.1.1.jar": "e5b41b43d481510afd0cdc372b593770ddee5a0a348d0744cef6c6cd77a27943",
    "s3a/analyticsaccelerator-s3-1.3.1.jar": "4959a9747cbb479c73c3ffbcd479bee5b014f8b2880994585a8693fb9d24675e",
    "s3a/annotations-2.35.4.jar": "6f36bd87155d1dd85d6efbdd29e532e3759a022211feb71affebee1aa34f04b8",
    "s3a/apache-client-2.35.4.jar": "6eade21b482724ed0a4613eaa95d20e47e7a81304bd28538ac427fece94a7740",
    "s3a/arns-2.35.4.jar": "c63cc29f76a8527e9e10b621703163df541dc5cb315508dc2898518602c75380",
    "s3a/auth-2.35.4.jar": "6b601323004833fb4a857ffc95db4795e0e6320eb93e64b1246c655c9ff04994",
    "s3a/aws-core-2.35.4.jar": "fdb5fc8f1a48d97fa7d04d3460fb42f6973c7b1bbe1b9d317871ef0162bcb623",
    "s3a/aws-query-protocol-2.35.4.jar": "9b4cf9b78977cc9f5b4ceae9c435dedbde6a055a0f8d9e053eaca945715e2a9f",
    "s3a/aws-xml-protocol-2.35.4.jar": "4f59176da2522c357b1993e4a890fde529f12f365795ef86269bde4a3984cd0d",
    "s3a/checksums-2.35.4.jar": "94464af4374d08ecf33ca06ed4d03e1615529e547726e26b56abacefbeee7948",
    "s3a/checksums-spi-2.35.4.jar": "88b5af85ac2d3c862be8856be4e683ab31932e4a5a3c1c45af864d2671ac7cec",
    "s3a/crt-core-2.35.4.jar": "2c6aaa17bf9ccbb9d962dded4351e73decb197e3c5519970e0dae17e05d3df62",
    "s3a/endpoints-spi-2.35.4.jar": "ef02441bda916959b8341290b49c68cc35538e1ad6f8629b75d8334dc6653e00",
    "s3a/eventstream-1.0.1.jar": "0c37d8e696117f02c302191b8110b0d0eb20fa412fce34c3a269ec73c16ce822",
    "s3a/hadoop-aws-3.5.0.jar": "66bd9eefb938b1a1657487324b63c13df2d8b17164a1dd24e0ef37b905bc5baa",
    "s3a/http-auth-2.35.4.jar": "3ec933a06e751a05e195eb3589209e23c44e1897263b6fcae34ef4cc63cd4491",
    "s3a/http-auth-aws-2.35.4.jar": "c4acb92fdec90bfd9b67bfab8e41b69cd152c03cacc10281a8ab464791856e01",
    "s3a/http-auth-aws-eventstream-2.35.4.jar": "709107552f302be3fa9e05969a3779f5c0f07fb809e6fa1fa571a6f0c61326dd",
    "s3a/http-auth-spi-2.35.4.jar": "4495463406bb98eb136f2c3f3604ed5f08ec9974ebc3f34f2121b20679f61d5c",
    "s3a/http-client-spi-2.35.4.jar": "728be89b2a07b595edb0adee3a2cbbbdd4cb1f4caddde0d08c3979fe2620dedb",
    "s3a/identity-spi-2.35.4.jar": "188d73db7d4e2361654bc3c5a1b3eaeb445d0500fb012cc46c5d67975adf97bf",
    "s3a/json-utils-2.35.4.jar": "80d67a6bb3e7eb49c7d4b6e4ba4c1463ed7da0192b795158328602dc131c5ecc",
    "s3a/metrics-spi-2.35.4.jar": "c2a4ee90a21081317e2e6eba0c414d05d3d518aed2f86b1c1710a7367b450487",
    "s3a/netty-nio-client-2.35.4.jar": "b82f8b33e5c85273a47da45ede884d7ccb31c9c2f69e6910a76c5c48fa1275dc",
    "s3a/profiles-2.35.4.jar": "0f4ef7ca72ccd80dd49ebeaf7f3ce60a7d7a00da59a91aeeae6e91052bbacbd8",
    "s3a/protocol-core-2.35.4.jar": "f2532eca6ba2142fe4821d5decb03c83a3e15dc8bfae2240e7f2efa75f9868b5",
    "s3a/reactive-streams-1.0.4.jar": "f75ca597789b3dac58f61857b9ac2e1034a68fa672db35055a8fb4509e325f28",
    "s3a/regions-2.35.4.jar": "77eae87b34ce96ecdf916a9bc06684dbeafcb6d38ef0513285fa5d5d6d41f5ca",
    "s3a/retries-2.35.4.jar": "f99fb2f8c66d7e859955b3542d3af8f9de8f23a21d5e3250f0f2c5f18487e469",
    "s3a/retries-spi-2.35.4.jar": "668638751d059c527ddd41ffa4dcebe36a7c14860ed56776df09b861c14dc7dd",
    "s3a/s3-2.35.4.jar": "f23532c5223be9b0bfec0d72837ed09ed34dbdf8022818ba145b20076a78b4bc",
    "s3a/s3-transfer-manager-2.35.4.jar": "0eec78870b3d0abc509a847072cf963cb2ae6e360dc6161a9449b3398c470476",
    "s3a/sdk-core-2.35.4.jar": "fa559a4ce598852f3519c8f3b36250f583b0858a7611eedc4a81997778c617f4",
    "s3a/third-party-jackson-core-2.35.4.jar": "32f4252c6c2df8f3a4aff885e6dc77024ad6b4cb48455d07b461ec30c41643ea",
    "s3a/utils-2.35.4.jar": "642aeef536a071668f0b772f05f9d21573abf6955e7b6fb5fdb893760cca10e8",
    "s3a/utils-lite-2.35.4.jar": "e004806def5e22ec98edc48a133ff3317166255e1ba29d93d129e9fdfa64a7be",
}
S3A = JarSet(
    name="s3a",
    version=HADOOP,
    whose="S3A's",
    contents="Hadoop's S3A and of the AWS SDK (about 12 MB)",
    remedy="run the test again",
    dependencies=(
        Dependency("org.apache.hadoop", "hadoop-aws", HADOOP, "s3a"),
        Dependency("software.amazon.awssdk", "s3", SDK, "s3a", transitive=True),
        Dependency("software.amazon.awssdk", "s3-transfer-manager", SDK, "s3a", transitive=True),
        Dependency("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.1", "s3a"),
        Dependency("org.apache.spark", "spark-hadoop-cloud_2.13", "4.1.1", "cloud"),
    ),
    sha256=SHA256,
    excluded=("io.netty", "org.slf4j", "org.apache.httpcomponents", "commons-codec", "commons-logging"),
)
"""`s3a` is the file system. `cloud` is Spark's AbortableStreamBasedCheckpointFileManager, in the newest version that
partial mirrors of Maven Central have."""


def hadoop_conf(endpoint: str) -> dict[str, str]:
    """Return the Hadoop settings for a server on this machine, with few and quick retries."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        "fs.s3a.attempts.maximum": "2",
        "fs.s3a.retry.limit": "2",
        "fs.s3a.retry.interval": "20ms",
        "fs.s3a.retry.throttle.limit": "2",
        "fs.s3a.retry.throttle.interval": "20ms",
    }
