"""The files below one folder, wherever Spark writes its checkpoints: through Hadoop's file system API in the JVM.

On the driver's own disk Python writes them itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GONE = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
"""Java's errors for a file that is missing, or is deleted before it is read."""
EXISTS = (
    "org.apache.hadoop.fs.FileAlreadyExistsException",
    "org.apache.hadoop.fs.s3a.RemoteFileChangedException",
)
"""Java's errors for a file that exists already."""
CONDITIONAL = "fs.option.create.conditional.overwrite"
"""Hadoop's option for a create that an object store itself refuses where the object exists."""
WHOLE = "fs.capability.outputstream.abortable"
"""Hadoop's name of what object stores do: a file appears, or replaces another, when its stream is closed."""
IN_PLACE = "FileSystemBasedCheckpointFileManager"
"""Spark's manager for stores without Hadoop's FileContext."""
READS = 3
"""Attempts to read an object that is replaced meanwhile."""
STATUS = re.compile(r"path=(?P<path>[^;]*); isDirectory=(?P<folder>\w+);.*?modification_time=(?P<modified_ms>\d+)")
"""One entry in the text of Hadoop's FileStatus array."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder in a listing."""

    is_folder: bool
    modified_s: float
    """Moment of the last write, by the store's clock."""


class Files(Protocol):
    """Files below one folder. A name is given as its parts; folders are created where they are missing."""

    @property
    def location(self) -> str:
        """The folder."""

    def entries(self, *names: str) -> Mapping[str, Entry]:
        """Return what a folder holds, by name; nothing where there is no such folder."""

    def text(self, *names: str) -> str | None:
        """Return a file's text; None where there is no such file. Another process may replace it meanwhile."""

    def create(self, text: str, *names: str) -> bool:
        """Write a file that does not exist yet; return False, and write nothing, where it does.

        Of two processes one succeeds, on stores that can tell. Others may answer True to both: read the file again.
        """

    def replace(self, text: str, *names: str) -> None:
        """Write a file, or replace it: a reader sees the old text or the new one."""

    def delete(self, *names: str) -> None:
        """Delete a file; one that does not exist is no error."""


class HadoopFiles:
    """Files on any store that Spark can use."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._location = location
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        self._conf: Any = spark._jsparkSession.sessionState().newHadoopConf()
        self._files: Any = self._path(location).getFileSystem(self._conf)
        local = str(self._files.getScheme()) == "file"
        # The driver's Python and its JVM have the same disk. A claim is renewed every few seconds, for ever: through
        # the JVM that took a hundredth of a core.
        self._disk = Path(self.resolve()[2]) if local else None
        # The local file system replaces a file and its checksum one after the other: in between they do not match.
        self._readable: Any = self._files.getRawFileSystem() if local else self._files
        self._whole = bool(self._files.hasPathCapability(self._path(location), WHOLE))
        # Spark's own manager creates a file atomically on every store that Spark supports.
        self._manager: Any = jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager

    @property
    def location(self) -> str:
        """The folder, as it was given."""
        return self._location

    def resolve(self) -> tuple[str, str, str]:
        """Return scheme, authority and path of the folder: the same for all ways to write it."""
        uri = self._files.makeQualified(self._path(self._location)).toUri()
        return str(uri.getScheme()), str(uri.getAuthority() or ""), str(uri.getPath())

    def entries(self, *names: str) -> Mapping[str, Entry]:
        """List a folder in two round trips to the JVM, whatever its size."""
        from py4j.protocol import Py4JJavaError

        try:
            statuses = self._files.listStatus(self._at(*names))
            # Java's Arrays.toString is not found for an array of FileStatus.
            listed = str(self._jvm.scala.runtime.ScalaRunTime.stringOf(statuses))
        except Py4JJavaError as error:
            if _kind(error) in GONE:
                return {}
            raise
        return {
            found["path"].rpartition("/")[2]: Entry(found["folder"] == "true", int(found["modified_ms"]) / 1e3)
            for found in STATUS.finditer(listed)
        }

    def text(self, *names: str) -> str | None:
        """Read a file whole."""
        from py4j.protocol import Py4JJavaError

        left = READS
        while True:
            try:
                return self._read(*names)
            except Py4JJavaError as error:
                left -= 1
                if _kind(error) in GONE:
                    return None
                # S3A's readers report an object that is replaced meanwhile in several ways.
                if not self._whole or not left:
                    raise

    def _read(self, *names: str) -> str:
        stream = self._readable.open(self._at(*names))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def create(self, text: str, *names: str) -> bool:
        """Create a file exclusively, as each store does it: Spark's own manager checks first and writes then."""
        from py4j.protocol import Py4JJavaError

        if self._disk is not None:
            # Hadoop's local file system checks first, too.
            return self._create_on_disk(text, self._disk.joinpath(*names))
        file = self._at(*names)
        self._files.mkdirs(file.getParent())
        try:
            builder = self._files.createFile(file).overwrite(False)
            stream = builder.opt(CONDITIONAL, "true").build()
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        except Py4JJavaError as error:
            # The answer may be lost, and a client that asks again hears that the file exists: it may be ours.
            if self.text(*names) == text:
                return True
            if _kind(error) in EXISTS:
                return False
            raise
        return True

    def replace(self, text: str, *names: str) -> None:
        """Replace a file: atomically on disks, object stores and through Hadoop's FileContext, else in place."""
        if self._disk is not None:
            self._replace_on_disk(text, self._disk.joinpath(*names))
            return
        file = self._at(*names)
        if self._whole:
            # A rename deletes the old object first, and copies the new one many requests later.
            stream = self._files.create(file, True)
            cancel = stream.abort
        else:
            self._files.mkdirs(file.getParent())
            manager = self._manager.create(file.getParent(), self._conf)
            # Spark's manager without FileContext leaves an existing file as it is where a rename does not overwrite.
            in_place = str(manager.getClass().getSimpleName()) == IN_PLACE and self._files.exists(file)
            stream = self._files.create(file, True) if in_place else manager.createAtomic(file, True)
            cancel = stream.close if in_place else stream.cancel
        try:
            stream.write(bytearray(text.encode()))
        except BaseException:
            cancel()
            raise
        stream.close()

    def delete(self, *names: str) -> None:
        """Delete a file; Spark's local file systems delete its checksum, too."""
        self._files.delete(self._at(*names), False)

    def _create_on_disk(self, text: str, file: Path) -> bool:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with file.open("xb") as stream:
                stream.write(text.encode())
        except FileExistsError:
            return file.read_bytes() == text.encode()
        return True

    def _replace_on_disk(self, text: str, file: Path) -> None:
        """Move a draft onto a file. Hadoop's local file system deletes the old file first: a reader finds none."""
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_name(f".{file.name}.{uuid4()}.tmp")
        draft.write_bytes(text.encode())
        # A file without a checksum is not checked; one with another file's checksum is an error for Spark.
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        draft.replace(file)

    def _at(self, *names: str) -> Any:
        return self._path("/".join((self._location, *names)))


def _kind(error: Any) -> str:
    return str(error.java_exception.getClass().getName())
