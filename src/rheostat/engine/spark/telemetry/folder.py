"""Counts the files that wait for a file source, as the source itself would find them.

Spark's own listing is called on the running source, so that globs, filters, hidden files and `maxFileAge` are its own.
It only reads: what the source has taken is neither changed nor locked while files are listed. Its cost grows with the
folder, so a bounded count of the folder comes first, and a folder beyond the bound is not listed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rheostat.engine.spark.telemetry.reflect import array, class_of, method_of, read_field
from rheostat.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_FILES = 20_000
"""Largest folder to list, in files: Spark lists it in about a second on a local disk."""
MOST_FOLDERS = 32
"""Most folders to list: beyond `spark.sql.sources.parallelPartitionDiscovery.threshold`, 32 by default, Spark lists
them by a job, which would take slots from the query."""
LISTING = "fetchAllFiles"
"""The source's own method that lists its files."""
_LOCAL = re.compile(r"file:(//[^/]*)?")
_GLOB = re.compile(r"[*?\[{]")


@dataclass(frozen=True, slots=True)
class FolderCount:
    """Files of a source: those that its batches have taken up to its log offset, and those that wait."""

    log_offset: int
    taken: int
    waiting: int
    bytes_taken: int
    """Without files that are gone."""
    bytes_waiting: int


class FolderEnds:
    """Lists the folder of one running file source."""

    def __init__(self, spark: SparkSession, source: Any, most_files: int = MOST_FILES) -> None:
        gateway: Any = spark.sparkContext._gateway
        self._gateway, self._jvm = gateway, gateway.jvm
        self._source = source
        self._most_files = most_files
        self.path = str(source.toString()).removeprefix("FileStreamSource[").removesuffix("]")
        self._list = method_of(source.getClass(), LISTING)
        self._is_new, self._size = self._new_file_test(), self._size_function()

    @property
    def name(self) -> str:
        """The folder, for messages."""
        return f"the listing of {self.path}"

    def count(self) -> FolderCount | None:
        """Return the files taken and waiting; None if a batch was planned meanwhile."""
        self._check_size()
        listed = self._list.invoke(self._source, array(self._gateway, self._jvm.java.lang.Object))
        # Spark 3.5 is built for Scala 2.12, which has only this converter.
        files = self._jvm.scala.collection.JavaConverters.seqAsJavaList(listed)
        # The source's map of taken files changes only when a batch is planned, which changes the log offset.
        before = int(self._source.currentLogOffset())
        waiting = files.stream().filter(self._is_new).mapToLong(self._size).summaryStatistics()
        everything = int(files.stream().mapToLong(self._size).sum())
        taken, bytes_waiting = int(self._source.seenFiles().size()), int(waiting.getSum())
        if int(self._source.currentLogOffset()) != before:
            return None
        return FolderCount(before, taken, int(waiting.getCount()), everything - bytes_waiting, bytes_waiting)

    def _new_file_test(self) -> Any:
        """Return the source's own test for a file of its listing as a java.util.function.Predicate.

        It is composed of method handles: one call from Python per file would take a second for 3,000 files.
        """
        invoke, seen = self._jvm.java.lang.invoke, self._source.seenFiles()
        lookup, entry = invoke.MethodHandles.publicLookup(), self._entry()
        is_new = lookup.unreflect(method_of(seen.getClass(), "isNewFile")).bindTo(seen)
        parts = [lookup.unreflect(method_of(entry, name)) for name in ("path", "timestamp")]
        of_entries = invoke.MethodHandles.filterArguments(is_new, 0, array(self._gateway, invoke.MethodHandle, *parts))
        type_of_test = invoke.MethodType.methodType(self._jvm.java.lang.Boolean.TYPE, entry)
        test = invoke.MethodHandles.permuteArguments(
            of_entries, type_of_test, array(self._gateway, self._jvm.int, 0, 0)
        )
        predicate = self._jvm.java.lang.Class.forName("java.util.function.Predicate")
        return invoke.MethodHandleProxies.asInterfaceInstance(predicate, test)

    def _size_function(self) -> Any:
        """Return the bytes of a file of the listing as a java.util.function.ToLongFunction."""
        invoke = self._jvm.java.lang.invoke
        size = invoke.MethodHandles.publicLookup().unreflect(method_of(self._entry(), "size"))
        function = self._jvm.java.lang.Class.forName("java.util.function.ToLongFunction")
        return invoke.MethodHandleProxies.asInterfaceInstance(function, size)

    def _entry(self) -> Any:
        return class_of(self._jvm, self._source, str(self._source.getClass().getName()) + "$NewFileEntry")

    def _check_size(self) -> None:
        """Raise if the folder is too large to list."""
        root = self.path[: match.start()].rpartition("/")[0] if (match := _GLOB.search(self.path)) else self.path
        if local := _LOCAL.match(root):
            # Hadoop writes a path as it is, without the escapes of a URL.
            files, folders = count_local(root[local.end() :] or "/", self._most_files)
        else:
            files, folders = self._count_remote(root)
        if files > self._most_files:
            raise EngineError(f"{self.path} has more than {self._most_files} files, and is not listed")
        if folders > MOST_FOLDERS:
            raise EngineError(f"{self.path} has more than {MOST_FOLDERS} folders, which Spark lists by a job")

    def _count_remote(self, root: str) -> tuple[int, int]:
        """Count files and their folders on any file system of Hadoop, up to the bound; its listing comes in pages."""
        from py4j.protocol import Py4JJavaError

        jvm, invoke, gateway = self._jvm, self._jvm.java.lang.invoke, self._gateway
        lookup, handles = invoke.MethodHandles.publicLookup(), invoke.MethodHandles
        folders = jvm.java.util.concurrent.ArrayBlockingQueue(self._most_files)
        add = lookup.unreflect(method_of(folders.getClass(), "add")).bindTo(folders)
        path = jvm.java.lang.Class.forName("org.apache.hadoop.fs.Path")
        status = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FileStatus")
        parent = lookup.unreflect(method_of(path, "getParent"))
        folder = handles.filterReturnValue(lookup.unreflect(method_of(status, "getPath")), parent)
        typed = add.asType(invoke.MethodType.methodType(jvm.java.lang.Boolean.TYPE, path))
        each = handles.filterArguments(typed, 0, array(gateway, invoke.MethodHandle, folder))
        functional = jvm.org.apache.hadoop.util.functional
        consumer = jvm.java.lang.Class.forName("org.apache.hadoop.util.functional.ConsumerRaisingIOE")
        try:
            files = read_field(self._source, "fs").listFiles(jvm.org.apache.hadoop.fs.Path(root), True)
            functional.RemoteIterators.foreach(files, invoke.MethodHandleProxies.asInterfaceInstance(consumer, each))
        except Py4JJavaError as error:
            # A full queue ends the listing.
            if str(error.java_exception.getClass().getSimpleName()) != "IllegalStateException":
                raise
            return self._most_files + 1, 0
        return int(folders.size()), int(jvm.java.util.HashSet(folders).size())


def count_local(root: str, most_files: int) -> tuple[int, int]:
    """Count files and folders below a local folder, up to just beyond the bounds."""
    files, folders, open_folders = 0, 0, [root]
    while open_folders and files <= most_files and folders <= MOST_FOLDERS:
        folders += 1
        with os.scandir(open_folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    open_folders.append(entry.path)
                    continue
                files += 1
                if files > most_files:
                    break
    return files, folders
