package rheostat.stores;

import java.io.BufferedOutputStream;
import java.io.File;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import java.util.EnumSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * Local files under the scheme bad://, with faults that a test sets while it runs. See bad_store.py.
 *
 * <p>Without faults it is as good as HDFS: a file that must not exist is created atomically, a rename is atomic, and one
 * that must not overwrite fails if the file exists. The first folder of a path whose name ends with ".bad" is a store.
 * Beside it, the file "NAME.bad.faults" has a fault per line, and every call is appended to "NAME.bad.calls".
 *
 * <p>Janino compiles this file: no lambdas, and collections return Object.
 */
public class BadFileSystem extends RawLocalFileSystem {
    static final ConcurrentHashMap COUNTS = new ConcurrentHashMap();
    /** Depth of calls of this thread: Hadoop's own implementation calls its public methods. */
    static final ThreadLocal DEPTH = new ThreadLocal();

    public URI getUri() {
        return URI.create("bad:///");
    }

    public String getScheme() {
        return "bad";
    }

    public FSDataInputStream open(Path path, int bufferSize) throws IOException {
        Call call = new Call("open", path);
        try {
            FSDataInputStream stream = super.open(path, bufferSize);
            call.answer();
            return stream;
        } finally {
            call.leave();
        }
    }

    public FSDataOutputStream create(Path path, boolean overwrite, int bufferSize, short replication, long blockSize,
            Progressable progress) throws IOException {
        return createFile(path, overwrite, true);
    }

    public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int bufferSize,
            short replication, long blockSize, Progressable progress) throws IOException {
        return createFile(path, overwrite, true);
    }

    public FSDataOutputStream createNonRecursive(Path path, FsPermission permission, boolean overwrite, int bufferSize,
            short replication, long blockSize, Progressable progress) throws IOException {
        return createFile(path, overwrite, false);
    }

    public FSDataOutputStream createNonRecursive(Path path, FsPermission permission, EnumSet<CreateFlag> flags,
            int bufferSize, short replication, long blockSize, Progressable progress) throws IOException {
        return createFile(path, flags.contains(CreateFlag.OVERWRITE), false);
    }

    private FSDataOutputStream createFile(Path path, boolean overwrite, boolean parents) throws IOException {
        Call call = new Call("create", path);
        try {
            File file = pathToFile(path);
            if (parents) {
                Files.createDirectories(file.getParentFile().toPath(), NO_ATTRIBUTES);
            }
            if (!overwrite) {
                try {
                    Files.createFile(file.toPath(), NO_ATTRIBUTES);
                } catch (java.nio.file.FileAlreadyExistsException error) {
                    throw new FileAlreadyExistsException(path + " already exists");
                }
            }
            OutputStream stream = new Output(path, new FileOutputStream(file));
            call.answer();
            return new FSDataOutputStream(stream, null);
        } finally {
            call.leave();
        }
    }

    private static final java.nio.file.attribute.FileAttribute[] NO_ATTRIBUTES =
        new java.nio.file.attribute.FileAttribute[0];

    public boolean rename(Path source, Path target) throws IOException {
        try {
            move(source, target, false);
            return true;
        } catch (FileAlreadyExistsException error) {
            return false;
        } catch (FileNotFoundException error) {
            return false;
        }
    }

    protected void rename(Path source, Path target, Options.Rename... options) throws IOException {
        boolean overwrite = false;
        for (int i = 0; i < options.length; i++) {
            overwrite = overwrite || options[i] == Options.Rename.OVERWRITE;
        }
        move(source, target, overwrite);
    }

    void move(Path source, Path target, boolean overwrite) throws IOException {
        Call call = new Call("rename", target);
        try {
            File from = pathToFile(source);
            File to = pathToFile(target);
            if (!from.exists()) {
                throw new FileNotFoundException(source + " does not exist");
            }
            if (call.copies && from.isFile()) {
                copy(from, to, target);
            } else if (overwrite) {
                Files.move(from.toPath(), to.toPath(), new java.nio.file.CopyOption[] {StandardCopyOption.ATOMIC_MOVE});
            } else if (from.isFile()) {
                // Unlike a rename, a link fails if the file exists.
                try {
                    Files.createLink(to.toPath(), from.toPath());
                } catch (java.nio.file.FileAlreadyExistsException error) {
                    throw new FileAlreadyExistsException(target + " already exists");
                }
                Files.delete(from.toPath());
            } else {
                if (to.exists()) {
                    throw new FileAlreadyExistsException(target + " already exists");
                }
                super.rename(source, target);
            }
            call.answer();
        } finally {
            call.leave();
        }
    }

    /** Copy, then delete, whether or not the target exists. A fault of "half" or "copied" applies in between. */
    private void copy(File from, File to, Path target) throws IOException {
        byte[] content = Files.readAllBytes(from.toPath());
        FileOutputStream stream = new FileOutputStream(to);
        try {
            stream.write(content, 0, content.length / 2);
            pause("half", target);
            stream.write(content, content.length / 2, content.length - content.length / 2);
        } finally {
            stream.close();
        }
        pause("copied", target);
        from.delete();
    }

    private static void pause(String kind, Path path) throws IOException {
        Object depth = DEPTH.get();
        DEPTH.set(null);
        try {
            Call call = new Call(kind, path);
            try {
                call.answer();
            } finally {
                call.leave();
            }
        } finally {
            DEPTH.set(depth);
        }
    }

    public boolean delete(Path path, boolean recursive) throws IOException {
        Call call = new Call("delete", path);
        try {
            boolean deleted = super.delete(path, recursive);
            call.answer();
            return deleted;
        } finally {
            call.leave();
        }
    }

    public FileStatus[] listStatus(Path path) throws IOException {
        Call call = new Call("list", path);
        try {
            FileStatus[] entries = super.listStatus(path);
            call.answer();
            return entries;
        } finally {
            call.leave();
        }
    }

    public boolean mkdirs(Path path) throws IOException {
        return mkdirs(path, null);
    }

    public boolean mkdirs(Path path, FsPermission permission) throws IOException {
        Call call = new Call("mkdirs", path);
        try {
            Files.createDirectories(pathToFile(path).toPath(), NO_ATTRIBUTES);
            call.answer();
            return true;
        } finally {
            call.leave();
        }
    }

    public FileStatus getFileStatus(Path path) throws IOException {
        Call call = new Call("status", path);
        try {
            FileStatus status = super.getFileStatus(path);
            call.answer();
            return status;
        } finally {
            call.leave();
        }
    }

    public FileStatus getFileLinkStatus(Path path) throws IOException {
        return getFileStatus(path);
    }

    public boolean exists(Path path) throws IOException {
        Call call = new Call("status", path);
        try {
            boolean exists = pathToFile(path).exists();
            call.answer();
            return exists;
        } finally {
            call.leave();
        }
    }

    /** The same store for Hadoop's FileContext. */
    public static class Context extends DelegateToFileSystem {
        public Context(URI uri, Configuration conf) throws IOException, URISyntaxException {
            super(uri, new BadFileSystem(), conf, "bad", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }

        public void renameInternal(Path source, Path target) throws IOException {
            ((BadFileSystem) fsImpl).move(source, target, false);
        }

        public void renameInternal(Path source, Path target, boolean overwrite) throws IOException {
            ((BadFileSystem) fsImpl).move(source, target, overwrite);
        }
    }

    /** The same without an overwriting rename of its own: Hadoop deletes the target first, as on Google's store. */
    public static class DeletingContext extends DelegateToFileSystem {
        public DeletingContext(URI uri, Configuration conf) throws IOException, URISyntaxException {
            super(uri, new BadFileSystem(), conf, "bad", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }
    }

    /** A file that is being written. The faults of "close" apply when it is closed. */
    static class Output extends FilterOutputStream {
        private final Path path;
        private boolean closed;

        Output(Path path, OutputStream file) {
            super(new BufferedOutputStream(file));
            this.path = path;
        }

        public void write(byte[] bytes, int offset, int length) throws IOException {
            out.write(bytes, offset, length);
        }

        public void close() throws IOException {
            if (closed) {
                return;
            }
            closed = true;
            Call call = null;
            try {
                call = new Call("close", path);
            } finally {
                out.close();
                if (call != null) {
                    call.leave();
                }
            }
            call.answer();
        }
    }

    /** One call of the file system, with the faults that apply to it. */
    static class Call {
        private final boolean outermost;
        private final String kind;
        private final String path;
        private String log;
        private boolean lost;
        private boolean crashes;
        boolean copies;

        /** Apply the faults that come before the call takes effect. */
        Call(String kind, Path path) throws IOException {
            this.kind = kind;
            this.path = path.toUri().getPath();
            int end = (this.path + "/").indexOf(".bad/");
            outermost = DEPTH.get() == null && end >= 0;
            if (!outermost) {
                return;
            }
            String store = this.path.substring(0, end + 4);
            log = store + ".calls";
            begin(new File(store + ".faults"));
            DEPTH.set(Boolean.TRUE);
        }

        private void begin(File faults) throws IOException {
            boolean fails = false;
            String outcome = "ok";
            String held = null;
            long pause = 0;
            String[] lines = read(faults);
            for (int i = 0; i < lines.length; i++) {
                String[] fault = lines[i].split("\t", 6);
                if (fault.length < 6 || !applies(fault)) {
                    continue;
                }
                String effect = fault[1];
                if (effect.equals("slow")) {
                    pause += Long.parseLong(fault[4]);
                    continue;
                }
                outcome = effect;
                fails = fails || effect.equals("fail");
                lost = lost || effect.equals("lose");
                copies = copies || effect.equals("copy");
                crashes = crashes || effect.equals("crash after");
                held = effect.equals("hold") ? fault[0] : held;
                if (effect.equals("crash")) {
                    note(outcome);
                    Runtime.getRuntime().halt(137);
                }
            }
            note(outcome);
            sleep(pause);
            while (held != null && holds(read(faults), held)) {
                sleep(2);
            }
            if (fails) {
                throw new IOException("bad store: " + kind + " of " + path + " fails");
            }
        }

        private boolean applies(String[] fault) {
            if (!fault[2].equals(kind) && !fault[2].equals("any") || !Pattern.compile(fault[5]).matcher(path).find()) {
                return false;
            }
            AtomicInteger count = (AtomicInteger) COUNTS.get(fault[0]);
            if (count == null) {
                COUNTS.putIfAbsent(fault[0], new AtomicInteger());
                count = (AtomicInteger) COUNTS.get(fault[0]);
            }
            int nth = Integer.parseInt(fault[3]);
            return count.incrementAndGet() == nth || nth == 0;
        }

        private static boolean holds(String[] lines, String id) {
            for (int i = 0; i < lines.length; i++) {
                if (lines[i].startsWith(id + "\t")) {
                    return true;
                }
            }
            return false;
        }

        private static String[] read(File file) throws IOException {
            try {
                return new String(Files.readAllBytes(file.toPath()), "UTF-8").split("\n");
            } catch (java.nio.file.NoSuchFileException error) {
                return new String[0];
            }
        }

        private static void sleep(long ms) throws IOException {
            if (ms > 0) {
                try {
                    Thread.sleep(ms);
                } catch (InterruptedException error) {
                    throw new InterruptedIOException("bad store: a slow call was interrupted");
                }
            }
        }

        private void note(String outcome) throws IOException {
            FileOutputStream stream = new FileOutputStream(log, true);
            try {
                stream.write((kind + "\t" + outcome + "\t" + path + "\n").getBytes("UTF-8"));
            } finally {
                stream.close();
            }
        }

        /** Apply the faults that come after the call has taken effect. */
        void answer() throws IOException {
            if (crashes) {
                Runtime.getRuntime().halt(137);
            }
            if (lost) {
                throw new IOException("bad store: the answer to " + kind + " of " + path + " is lost");
            }
        }

        void leave() {
            if (outermost) {
                DEPTH.set(null);
            }
        }
    }
}
