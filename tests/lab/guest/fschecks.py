#!/usr/bin/env python3
"""File system checks on a mounted share: fschecks.py DIR [--no NAME,NAME...]

Prints "ok NAME" or "FAIL NAME: reason" per check, and "skip NAME" for those
named by --no. Works in DIR/checks.PID, which it removes at the end. MANY is the number of files of a large folder (1000).
"""
import errno, fcntl, hashlib, mmap, os, shutil, subprocess, sys, time

CHECKS = []
MANY = int(os.environ.get("MANY", "1000"))


def check(f):
    CHECKS.append(f)
    return f


def expect_errno(code, call, *args):
    try:
        call(*args)
    except OSError as e:
        codes = code if isinstance(code, tuple) else (code,)
        assert e.errno in codes, f"errno {errno.errorcode.get(e.errno, e.errno)}, expected {[errno.errorcode[c] for c in codes]}"
        return
    raise AssertionError(f"{call.__name__} did not fail")


def put(path, data=b"x"):
    with open(path, "wb") as f:
        f.write(data)


def get(path):
    with open(path, "rb") as f:
        return f.read()


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")


@check
def write_read_verify_64m():
    block = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(32768))  # 1 MiB
    h = hashlib.sha256()
    with open("big", "wb") as f:
        for i in range(64):
            data = b"%8d" % i + block[8:]
            f.write(data)
            h.update(data)
        f.flush()
        os.fsync(f.fileno())
    drop_caches()
    r = hashlib.sha256()
    with open("big", "rb") as f:
        while data := f.read(1 << 20):
            r.update(data)
    assert os.stat("big").st_size == 64 << 20, "size"
    assert h.digest() == r.digest(), "content differs"


@check
def random_reads_match():
    fd = os.open("big", os.O_RDONLY)
    for i in (0, 1, 17, 40, 63):
        assert os.pread(fd, 8, i << 20) == b"%8d" % i, f"block {i}"
    assert os.pread(fd, 10, 64 << 20) == b"", "read at end of file"
    assert len(os.pread(fd, 100, (64 << 20) - 7)) == 7, "read across end of file"
    os.close(fd)


@check
def truncate_and_extend():
    put("t", b"a" * 10000)
    os.truncate("t", 5000)
    os.truncate("t", 9000)
    drop_caches()
    assert get("t") == b"a" * 5000 + b"\0" * 4000


@check
def sparse_write():
    with open("sparse", "wb") as f:
        f.seek(5 << 30)
        f.write(b"end")
    drop_caches()
    assert os.stat("sparse").st_size == (5 << 30) + 3
    fd = os.open("sparse", os.O_RDONLY)
    assert os.pread(fd, 4, (5 << 30) - 4) == b"\0" * 4
    assert os.pread(fd, 9, 5 << 30) == b"end"
    os.close(fd)
    os.unlink("sparse")


@check
def append_mode():
    put("a", b"1")
    with open("a", "ab") as f:
        f.write(b"2")
    with open("a", "ab") as f:
        f.write(b"3")
    assert get("a") == b"123"


@check
def mmap_write():
    put("m", b"\0" * 65536)
    with open("m", "r+b") as f:
        m = mmap.mmap(f.fileno(), 65536)
        m[30000:30005] = b"hello"
        m.flush()
        m.close()
    drop_caches()
    assert get("m")[30000:30005] == b"hello"


@check
def many_files():
    os.mkdir("many")
    for i in range(MANY):
        put(f"many/f{i}", b"%d" % i)
    names = sorted(os.listdir("many"))
    assert names == sorted(f"f{i}" for i in range(MANY)), f"{len(names)} names listed"
    for i in range(MANY):
        os.rename(f"many/f{i}", f"many/g{i}")
    drop_caches()
    assert len(os.listdir("many")) == MANY
    for i in range(0, MANY, 50):
        assert get(f"many/g{i}") == b"%d" % i
    for i in range(MANY):
        os.unlink(f"many/g{i}")
    assert os.listdir("many") == []
    os.rmdir("many")


@check
def directories():
    os.makedirs("d/1/2/3")
    expect_errno(errno.EEXIST, os.mkdir, "d/1")
    expect_errno((errno.ENOTEMPTY, errno.EEXIST), os.rmdir, "d/1")
    os.rename("d/1", "d/x")
    assert os.path.isdir("d/x/2/3")
    expect_errno(errno.ENOENT, os.stat, "d/1")
    shutil.rmtree("d")
    expect_errno(errno.ENOENT, os.stat, "d")


@check
def rename_over_existing():
    put("r1", b"one")
    put("r2", b"two")
    os.rename("r1", "r2")
    assert get("r2") == b"one"
    expect_errno(errno.ENOENT, os.stat, "r1")


@check
def exclusive_create():
    put("x")
    expect_errno(errno.EEXIST, os.open, "x", os.O_CREAT | os.O_EXCL | os.O_WRONLY)


@check
def unlink_while_open():
    f = open("u", "w+b")
    f.write(b"still here")
    f.flush()
    os.unlink("u")
    f.seek(0)
    assert f.read() == b"still here"
    f.close()
    expect_errno(errno.ENOENT, os.stat, "u")


@check
def unlinked_name_hidden():
    """SMB without POSIX extensions keeps the name until the last close."""
    with open("uh", "w+b"):
        os.unlink("uh")
        assert "uh" not in os.listdir("."), "name still listed"


@check
def rename_while_open():
    f = open("ro1", "w+b")
    f.write(b"abc")
    f.flush()
    os.rename("ro1", "ro2")
    f.write(b"def")
    f.close()
    assert get("ro2") == b"abcdef"


@check
def symlinks():
    put("target", b"T")
    os.symlink("target", "link")
    assert os.readlink("link") == "target"
    assert get("link") == b"T"
    os.symlink("nowhere/at/all", "dangling")
    assert os.path.islink("dangling")
    os.unlink("link")
    os.unlink("dangling")


@check
def hard_links():
    put("h1", b"H")
    os.link("h1", "h2")
    assert os.stat("h1").st_ino == os.stat("h2").st_ino
    assert os.stat("h2").st_nlink == 2
    os.unlink("h1")
    assert get("h2") == b"H"


@check
def long_and_unicode_names():
    names = ["n" * 255, "\u00e4\u00f6\u00fc-\u03a9-\u6f22\u5b57-\U0001F600", "with space", "a'b", "UPPER", "lower", "trailing~1", "-dash", "%41;#"]
    for n in names:
        put(n, n.encode())
    drop_caches()
    assert set(names) <= set(os.listdir(".")), set(names) - set(os.listdir("."))
    for n in names:
        assert get(n) == n.encode(), n
        os.unlink(n)
    expect_errno(errno.ENAMETOOLONG, put, "n" * 256)


@check
def times():
    put("times")
    os.utime("times", ns=(1_000_000_000_123_456_700, 1_500_000_000_765_432_100))
    drop_caches()
    s = os.stat("times")
    assert s.st_mtime_ns == 1_500_000_000_765_432_100, s.st_mtime_ns
    assert abs(time.time() - s.st_ctime) < 120, "ctime far from now"


@check
def mode_bits():
    put("mode")
    os.chmod("mode", 0o640)
    drop_caches()
    assert os.stat("mode").st_mode & 0o777 == 0o640, oct(os.stat("mode").st_mode)


@check
def statfs():
    s = os.statvfs(".")
    assert s.f_blocks > 0 and s.f_bavail > 0


@check
def xattrs():
    put("xa")
    os.setxattr("xa", "user.one", b"1")
    os.setxattr("xa", "user.two", b"2" * 1000)
    assert os.getxattr("xa", "user.one") == b"1"
    assert {"user.one", "user.two"} <= set(os.listxattr("xa"))
    os.removexattr("xa", "user.one")
    expect_errno(errno.ENODATA, os.getxattr, "xa", "user.one")


@check
def fallocate():
    fd = os.open("fa", os.O_CREAT | os.O_RDWR)
    os.posix_fallocate(fd, 0, 1 << 20)
    assert os.fstat(fd).st_size == 1 << 20
    os.close(fd)


@check
def copy_file_range():
    put("c1", os.urandom(300000))
    a, b = os.open("c1", os.O_RDONLY), os.open("c2", os.O_CREAT | os.O_RDWR)
    left = 300000
    while left:
        n = os.copy_file_range(a, b, left)
        assert n > 0
        left -= n
    os.close(a)
    os.close(b)
    assert get("c1") == get("c2")


LOCKER = """
import fcntl, sys
f = open(sys.argv[2], "r+b")
try:
    if sys.argv[1] == "flock":
        fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        fcntl.lockf(f, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, int(sys.argv[3]))
except (BlockingIOError, PermissionError):
    sys.exit(3)
"""


def other(*args):
    """Try the lock from another process: True when it got it."""
    rc = subprocess.run([sys.executable, "-c", LOCKER, *args]).returncode
    assert rc in (0, 3), f"locker exit {rc}"
    return rc == 0


@check
def flock():
    put("fl")
    with open("fl", "r+b") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        assert not other("flock", "fl"), "second process got the lock"
        fcntl.flock(f, fcntl.LOCK_UN)
        assert other("flock", "fl"), "lock not released"


@check
def fcntl_ranges():
    put("rl", b"x" * 100)
    with open("rl", "r+b") as f:
        fcntl.lockf(f, fcntl.LOCK_EX, 10, 0)
        assert not other("range", "rl", "5"), "overlapping range granted"
        assert other("range", "rl", "50"), "disjoint range refused"
        fcntl.lockf(f, fcntl.LOCK_UN, 10, 0)
        assert other("range", "rl", "5"), "range not released"


@check
def recursive_copy():
    os.makedirs("tree/a/b")
    for i in range(30):
        put(f"tree/a/b/{i}", os.urandom(1000 * i))
    shutil.copytree("tree", "tree2")
    for i in range(30):
        assert get(f"tree/a/b/{i}") == get(f"tree2/a/b/{i}")


def main():
    base = os.path.join(sys.argv[1], f"checks.{os.getpid()}")
    skip = sys.argv[3].split(",") if len(sys.argv) > 3 and sys.argv[2] == "--no" else []
    os.mkdir(base)
    os.chdir(base)
    bad = 0
    for f in CHECKS:
        name = f.__name__
        if name in skip:
            print("skip", name, flush=True)
            continue
        start = time.time()
        try:
            f()
            print("ok", name, flush=True)
        except Exception as e:
            bad += 1
            print(f"FAIL {name}: {type(e).__name__}: {e}".replace("\n", " "), flush=True)
        if time.time() - start > 5:
            print(f"info {name} took {time.time() - start:.1f} s", flush=True)
    os.chdir("/")
    try:
        shutil.rmtree(base)
        print("ok remove_tree")
    except OSError as e:
        bad += 1
        print(f"FAIL remove_tree: {e}")
    sys.exit(bad != 0)


main()
