"""Symbolic links through smbprotocol, a client of its own making. symlinks.py PORT SHARE USER PASSWORD DIRECTORY

DIRECTORY is the share's directory on this machine: what the client makes is looked at there, and the other way round.
"""

import errno
import os
import stat
import sys

import smbclient

port, share, user, password, directory = sys.argv[1:]
ROOT = rf"\\127.0.0.1\{share}"
# The server signs and encrypts as the client wants it, and keeps the directory to itself.
smbclient.register_session("127.0.0.1", username=user, password=password, port=int(port))
options = {"port": int(port)}
checks = []


def check(function):
    checks.append(function)
    return function


def far(path):
    return ROOT + "\\" + path


def near(path):
    return os.path.join(directory, path)


def read(path):
    with smbclient.open_file(far(path), mode="rb", **options) as file:
        return file.read()


def fails(number, function, *arguments):
    try:
        function(*arguments)
    except OSError as error:
        assert number in (None, error.errno), error
        return
    raise AssertionError(f"{function.__name__} {arguments} did not fail")


@check
def made_by_the_client():
    smbclient.symlink(r"d\f", far("to-file"), **options)
    assert os.readlink(near("to-file")) == "d/f"
    smbclient.symlink("d", far("to-dir"), **options)  # made of a directory
    assert os.readlink(near("to-dir")) == "d"
    smbclient.symlink(r"..\f", far(r"d\up"), **options)
    assert os.readlink(near("d/up")) == "../f"
    smbclient.symlink("nowhere", far("dangling"), **options)
    assert os.path.islink(near("dangling"))
    smbclient.symlink(far("f"), far("absolute"), **options)
    assert os.readlink(near("absolute")) == rf"\??\UNC\127.0.0.1\{share}\f"
    assert os.lstat(near("to-file")).st_uid == os.stat(directory).st_uid


@check
def read_by_the_client():
    assert smbclient.readlink(far("to-file"), **options) == far(r"d\f")
    assert smbclient.readlink(far(r"d\up"), **options) == far("f")
    os.symlink("d/f", near("by-a-program"))
    assert smbclient.readlink(far("by-a-program"), **options) == far(r"d\f")


@check
def followed_by_the_client():
    assert read("to-file") == b"in d"
    assert read("by-a-program") == b"in d"
    assert read(r"to-dir\f") == b"in d"
    assert read(r"to-dir\up") == b"in the root", "two links"
    assert read("absolute") == b"in the root"
    fails(errno.ENOENT, read, "dangling")
    with smbclient.open_file(far("to-file"), mode="wb", **options) as file:
        file.write(b"through a link")
    with open(near("d/f"), "rb") as file:
        assert file.read() == b"through a link"


@check
def listed_as_links():
    kinds = {entry.name: entry.is_symlink() for entry in smbclient.scandir(ROOT, **options)}
    assert kinds["to-file"] and kinds["to-dir"] and kinds["dangling"] and not kinds["d"] and not kinds["f"]
    told = smbclient.lstat(far("to-dir"), **options)
    assert stat.S_ISLNK(told.st_mode) and told.st_nlink == 1
    assert not stat.S_ISLNK(smbclient.stat(far("to-file"), **options).st_mode)


@check
def renamed_and_removed_themselves():
    smbclient.rename(far("to-file"), far("renamed"), **options)
    assert os.readlink(near("renamed")) == "d/f"
    smbclient.unlink(far("renamed"), **options)
    smbclient.unlink(far("dangling"), **options)
    assert not os.path.lexists(near("renamed")) and os.path.exists(near("d/f"))


@check
def what_is_there_already_stays():
    fails(None, lambda: smbclient.symlink("x", far("f"), **options))
    with open(near("f"), "rb") as file:
        assert file.read() == b"in the root"


@check
def a_target_that_is_too_long():
    target = "\\".join(["directory"] * 420)  # 4199 bytes
    fails(None, lambda: smbclient.symlink(target, far("long"), **options))
    assert not os.path.islink(near("long"))


os.mkdir(near("d"))
for path, data in [("d/f", b"in d"), ("f", b"in the root")]:
    with open(near(path), "wb") as file:
        file.write(data)
for path in ["d", "d/f", "f"]:
    os.chown(near(path), os.stat(directory).st_uid, os.stat(directory).st_gid)
for function in checks:
    try:
        function()
        print(f"ok {function.__name__}")
    except Exception as error:  # each check is counted
        print(f"FAIL {function.__name__}: {type(error).__name__} {error}")
