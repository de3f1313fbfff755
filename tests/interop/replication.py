"""Two servers, of which one has a replica of the other's share: what clients see of it, whatever happens.

replication.py PROGRAM SCRATCH: in SCRATCH/disk is an empty Btrfs. KILLS, FILES: see replication.sh.
"""

import ctypes
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import sys
import time

PROGRAM, SCRATCH = sys.argv[1:3]
DISK = os.path.join(SCRATCH, "disk")
USER, PASSWORD = "tester", "test-Pass1"
passed, failed = 0, 0


def check(name, is_good, said=""):
    global passed, failed
    if is_good:
        passed += 1
        print(f"ok {name}", flush=True)
    else:
        failed += 1
        print(f"FAIL {name}: {said}", flush=True)
    return is_good


def run(*command, **how):
    return subprocess.run(command, capture_output=True, text=True, **{"timeout": 1800, **how})


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


class Server:
    """A server with one share, which can be killed and started again at the same addresses."""

    def __init__(self, name, tls=False, net=None, disk=DISK):
        self.name, self.at = name, os.path.join(SCRATCH, name)
        # A network namespace of its own, and the address in it that the other server knows.
        self.inside, self.host = (["ip", "netns", "exec", net[0]], net[1]) if net else ([], "127.0.0.1")
        self.share = os.path.join(disk, name)
        self.state = os.path.join(self.at, "state")
        os.makedirs(self.state, mode=0o700)
        subprocess.run(["btrfs", "-q", "subvolume", "create", self.share], check=True)
        os.chown(self.share, 1000, 1000)
        self.smb, self.nfs, self.control, self.process, self.is_known = free_port(), free_port(), free_port(), None, False
        self.flags, self.declared = [], ["--share", f"{self.name}={self.share}"]
        if tls:
            key, certificate = os.path.join(self.at, "key.pem"), os.path.join(self.at, "certificate.pem")
            run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=localhost", "-addext", f"subjectAltName=DNS:localhost,IP:{self.host}", "-keyout", key, "-out", certificate, check=True)
            os.chmod(key, 0o600)
            self.flags = ["--control-certificate", certificate, "--control-key", key]

    def start(self, *before, tries=5):
        if self.is_ready(*before):
            self.is_known = True
        elif tries and not self.is_known and "cannot listen" in self.tail():
            self.smb, self.nfs, self.control = free_port(), free_port(), free_port()  # somebody has taken one meanwhile
            self.start(*before, tries=tries - 1)
        else:
            raise SystemExit(f"the server {self.name} is not ready: {self.tail()}")

    def is_ready(self, *before):
        log = open(os.path.join(self.at, "log"), "a")
        self.process = subprocess.Popen(
            [*self.inside, *before, PROGRAM, "serve", *self.declared, "--user", f"{USER}=1000:1000:{PASSWORD}",
             "--smb", f"127.0.0.1:{self.smb}", "--nfs", f"127.0.0.1:{self.nfs}", "--nfs-squash", "none", "--control", f"{self.host}:{self.control}", "--state", self.state, *self.flags],
            stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_parent)
        return any(line.startswith("ready ") for line in self.process.stdout)

    def tail(self):
        return run("tail", "-n", "8", os.path.join(self.at, "log")).stdout

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def command(self, *words):
        return run(*self.inside, PROGRAM, *words, "--state", self.state)

    def replicate(self, *words):
        return self.command("share", "replicate", self.name, *words)

    def status(self):
        return json.loads(self.replicate("--status", "--json").stdout)

    def smbclient(self, commands, to=SCRATCH):
        return run("smbclient", f"//127.0.0.1/{self.name}", "-p", str(self.smb), "-U", f"{USER}%{PASSWORD}", "-c", commands, cwd=to)


def nfs_has(server, path, data):
    """Whether a client of NFSv3 reads this in a share."""
    url = f"nfs://127.0.0.1/{server.name}/{path}?nfsport={server.nfs}&mountport={server.nfs}&version=3"
    got = subprocess.run(["nfs-cat", url], capture_output=True, timeout=120)
    return got.returncode == 0 and got.stdout == data


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def picture(top):
    """A digest of all that a client sees in a tree."""
    lines = []
    for directory, names, files in os.walk(top):
        names[:] = sorted(name for name in names if not name.startswith(".anabranch-"))
        for name in names + files:
            path = os.path.join(directory, name)
            short, known = os.path.relpath(path, top), os.lstat(path)
            if name == "fifo":
                continue  # a file for clients of SMB
            if stat.S_ISREG(known.st_mode):
                with open(path, "rb") as file:
                    lines.append(f"{short} {hashlib.sha256(file.read()).hexdigest()}")
            elif stat.S_ISDIR(known.st_mode):
                lines.append(f"{short}/")
    return "\n".join(sorted(lines))


def exact_picture(top):
    """The same with all that only a local program sees."""
    lines, first = [], {}
    for directory, names, files in os.walk(top):
        names[:] = sorted(name for name in names if not name.startswith(".anabranch-"))
        for name in sorted(names + files):
            path = os.path.join(directory, name)
            short, known = os.path.relpath(path, top), os.lstat(path)
            same = first.setdefault(known.st_ino, short)
            text = f"{short} {same} {known.st_mode:o} {known.st_uid}:{known.st_gid} {known.st_mtime_ns} {known.st_rdev}"
            if stat.S_ISREG(known.st_mode):
                with open(path, "rb") as file:
                    text += f" {hashlib.sha256(file.read()).hexdigest()} {known.st_blocks}"
            if stat.S_ISLNK(known.st_mode):
                text += " " + os.readlink(path)
            else:
                own = [key for key in os.listxattr(path) if not key.startswith(("user.anabranch.", "trusted.anabranch."))]
                text += str([(key, os.getxattr(path, key)) for key in sorted(own)])
            lines.append(text)
    return "\n".join(lines)


def seen(server):
    """What clients see of a share."""
    to = os.path.join(SCRATCH, "seen")
    shutil.rmtree(to, ignore_errors=True)
    os.mkdir(to)
    got = server.smbclient("prompt off; recurse on; mget *", to)
    if got.returncode != 0 and "NT_STATUS_NO_SUCH_FILE" not in got.stdout:
        return f"smbclient: {got.stdout} {got.stderr}"
    return picture(to)


def seen_at_once(server):
    """What clients see of a replica that goes on to no other state while they look."""
    for _ in range(20):
        before = server.status()["transfers"]
        found = seen(server)
        if server.status()["transfers"] == before:
            return found
    return "it never holds still"


def own(path):
    os.chown(path, 1000, 1000, follow_symlinks=False)


def write(path, data, mode="wb"):
    with open(path, mode) as file:
        file.write(data)
    own(path)


def populate(top):
    for directory in ("d/e/f", "empty", "u\u0308ber"):
        os.makedirs(os.path.join(top, directory))
    for at in range(20):
        write(os.path.join(top, f"d/file {at}"), os.urandom(5000 * at))
    os.link(os.path.join(top, "d/file 3"), os.path.join(top, "d/e/other name"))
    os.symlink("d/file 3", os.path.join(top, "link"))
    os.mkfifo(os.path.join(top, "fifo"))
    with open(os.path.join(top, "sparse"), "wb") as file:
        file.seek(5 << 20)
        file.write(b"end")
        file.truncate(8 << 20)
    os.setxattr(os.path.join(top, "d/file 1"), "user.color", b"red")
    for directory, names, files in os.walk(top):
        for name in names + files:
            own(os.path.join(directory, name))


def change(top, dice):
    """Changes some of a tree, by a local program."""
    files = [os.path.join(at, name) for at, names, files in os.walk(top) for name in files if ".anabranch-" not in at]
    files = [path for path in files if os.path.isfile(path) and not os.path.islink(path)]
    dirs = [at for at, names, files in os.walk(top) if ".anabranch-" not in at]
    for _ in range(dice.randint(1, 12)):
        path = dice.choice(files)
        what = dice.randrange(5)
        try:
            if what == 0:
                write(os.path.join(dice.choice(dirs), f"new {dice.randrange(1000)}"), os.urandom(dice.randrange(300_000)))
            elif what == 1:
                write(path, os.urandom(dice.randrange(9000)), "ab")
            elif what == 2:
                os.rename(path, os.path.join(dice.choice(dirs), os.path.basename(path) + "x"))
            elif what == 3 and len(files) > 15:
                os.remove(path)
            else:
                os.link(path, os.path.join(dice.choice(dirs), f"link {dice.randrange(1000)}"))
        except (FileNotFoundError, FileExistsError):
            pass


def snapshots(server):
    folder = os.path.join(server.share, ".anabranch-snapshots")
    return [os.path.join(folder, name) for name in os.listdir(folder)] if os.path.isdir(folder) else []


def states(replica):
    """The snapshots of a replica that clients are or were shown, the last at the end."""
    def number(at):
        return int(run("btrfs", "inspect-internal", "rootid", at, check=True).stdout)
    return sorted((at for at in snapshots(replica) if ".replica." in at), key=number)


def pictures(tops):
    """The pictures of those of these trees that nobody removes meanwhile."""
    found = set()
    for top in tops:
        try:
            found.add(picture(top))
        except FileNotFoundError:
            pass
    return found


def set_up(source, replica):
    made = json.loads(source.command("token", "create", "replicas", "--scope", "replicate", "--json").stdout)
    token = os.path.join(SCRATCH, "token")
    write(token, made["token"], "w")
    certificate = os.path.join(source.state, "control-certificate.pem")
    return ["--from", f"https://{source.host if source.inside else 'localhost'}:{source.control}/{source.name}", "--token-file", token, "--certificate-file", certificate]


def refusals(source, replica, words):
    """What is wrong is told when a replica is made."""
    def refused(name, says, *given):
        said = replica.replicate(*given)
        check(name, said.returncode != 0 and says in said.stderr, said.stderr)

    def other(at, value):
        return [value if word == words[words.index(at) + 1] else word for word in words]

    wrong = os.path.join(SCRATCH, "wrong")
    write(wrong, "x" * 43, "w")
    refused("a wrong token is refused", "does not accept the token", *other("--token-file", wrong))
    reads = json.loads(source.command("token", "create", "reads", "--scope", "shares", "--json").stdout)
    write(wrong, reads["token"], "w")
    refused("a token for something else is refused", "the token is for shares, and this is for replicate", *other("--token-file", wrong))
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=x",
        "-keyout", os.devnull, "-out", wrong, check=True)
    refused("a server with another certificate is refused", "is not the one that is trusted", *other("--certificate-file", wrong))
    refused("a share that is not there is refused", "no share nothing is served",
            *other("--from", f"https://localhost:{source.control}/nothing"))
    refused("a token does not cross a network as plain text", "only https://", *other("--from", "http://192.0.2.1:1/a"))
    write(os.path.join(replica.share, "mine"), b"x")
    refused("a share that holds something is refused", "holds something: mine", *words)
    os.remove(os.path.join(replica.share, "mine"))
    with open(os.path.join(SCRATCH, "token")) as file:
        api = run("curl", "-sk", "-H", f"Authorization: Bearer {file.read().strip()}", f"https://localhost:{source.control}/v1/shares")
    check("a token for replicas is for nothing else", '"scope"' in api.stdout, api.stdout)


def without_handles(source, replica, words):
    """A source that may not open files by filehandle says so."""
    source.end()
    source.start("setpriv", "--bounding-set=-dac_read_search")
    made = replica.replicate(*words)
    now = replica.replicate("--now")
    check("a source without handles is refused", made.returncode == 0 and "may not open files by filehandle" in now.stderr, now.stderr)
    check("and keeps nothing", not snapshots(source), snapshots(source))
    stopped = replica.replicate("--stop")
    check("what nothing was transferred to ends", stopped.returncode == 0 and not picture(replica.share), stopped.stderr)
    source.end()
    source.start()


def first_transfer(source, replica, words):
    made = replica.replicate(*words, "--every", "1h")
    if not check("an empty share becomes a replica", made.returncode == 0, made.stderr):
        return
    now = replica.replicate("--now")
    check("it is brought up to date", now.returncode == 0, now.stderr + replica.tail())
    check("clients see what the source has", seen(replica) == picture(source.share), seen(replica))
    check("nothing is missing in it", exact_picture(states(replica)[-1]) == exact_picture(source.share), states(replica))
    written = replica.smbclient("mkdir new")
    check("clients cannot write to it", "NT_STATUS" in written.stdout and not os.path.exists(os.path.join(replica.share, "new")), written.stdout)
    needed = [os.path.basename(at) for at in snapshots(source)]
    kept = source.command("snapshot", "remove", source.name, needed[0])
    check("nobody removes what a replica needs", kept.returncode != 0 and "needed for replication" in kept.stderr, kept.stderr)
    listed = source.replicate("--destinations")
    check("the source knows its replica", "replica-" in listed.stdout, listed.stdout + listed.stderr)


def later_transfers(source, replica):
    dice = random.Random(7)
    for at in range(3):
        change(source.share, dice)
        now = replica.replicate("--now")
        check(f"changes are taken over ({at})", now.returncode == 0 and seen(replica) == picture(source.share), now.stderr)
    check("nothing is missing after changes", exact_picture(states(replica)[-1]) == exact_picture(source.share), states(replica))
    check("the state before is there, too, and no other", (len(snapshots(source)), len(states(replica))) == (2, 2),
          (snapshots(source), states(replica)))


def kills(source, replica, count):
    """Whoever is killed, and whenever: clients of the replica see one of the source's snapshots, and later the last."""
    seed = int(os.environ.get("SEED", time.time()))
    print(f"SEED={seed}", flush=True)
    dice = random.Random(seed)
    for at in range(count):
        change(source.share, dice)
        before = seen_at_once(replica)
        starting = subprocess.Popen([PROGRAM, "share", "replicate", replica.name, "--now", "--state", replica.state],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.random() * float(os.environ.get("WITHIN", "0.8")))
        victim = dice.choice([source, replica])
        victim.kill()
        starting.kill()
        starting.wait()
        # A snapshot that is taken from now on is of what the source has now.
        complete = {before, picture(source.share)} | pictures(snapshots(source))
        if victim is source:
            check(f"kill {at} of {victim.name}: the replica is complete", seen_at_once(replica) in complete)
        victim.start()
        if not check(f"kill {at} of {victim.name}: the replica is complete afterwards", seen_at_once(replica) in complete, seen(replica)):
            return
        now = replica.replicate("--now")
        for _ in range(20):
            if now.returncode == 0:
                break
            # The transfer that was under way may have failed meanwhile.
            time.sleep(0.5)
            now = replica.replicate("--now")
        if not check(f"kill {at} of {victim.name}: it is brought up to date", seen(replica) == picture(source.share), now.stderr):
            return
    check("nothing is missing after kills", exact_picture(states(replica)[-1]) == exact_picture(source.share), states(replica))


def exchanged(source, replica, words):
    """The replica becomes the source of its former source, and both exchange their roles once more."""
    made = json.loads(replica.command("token", "create", "back", "--scope", "replicate", "--json").stdout)
    token = os.path.join(SCRATCH, "token-back")
    write(token, made["token"], "w")
    back = ["--from", f"http://127.0.0.1:{replica.control}/{replica.name}", "--token-file", token]
    refused = source.replicate(*back, "--reverse")
    check("roles are not exchanged with a replica that goes on", refused.returncode != 0 and "is a replica itself" in refused.stderr, refused.stderr)
    replica.replicate("--break")
    refused = source.replicate(*back)
    check("a source does not become a replica by mistake", refused.returncode != 0 and "has the destination" in refused.stderr, refused.stderr)
    write(os.path.join(source.share, "of the source"), b"written after the break")
    write(os.path.join(replica.share, "d", "of the replica"), os.urandom(50_000))
    os.unlink(os.path.join(replica.share, "link"))
    left, wanted = picture(source.share), picture(replica.share)
    # Btrfs does not remove the default subvolume.
    held = kept_for_others(source)[-1]
    run("btrfs", "subvolume", "set-default", held, check=True)
    exchanged = source.replicate(*back, "--reverse", "--every", "1h")
    check("the former source becomes a replica", exchanged.returncode == 0 and source.status()["state"] in ("resync", "mirrored"), exchanged.stderr)
    check("a snapshot that cannot be removed stays, and its destination, too", held in snapshots(source) and known(source), snapshots(source))
    source.kill()
    run("btrfs", "subvolume", "set-default", "5", DISK, check=True)
    source.start()
    now = source.replicate("--now")
    check("it is like its former replica", now.returncode == 0 and seen(source) == wanted, now.stderr)
    check("nothing is missing in it", exact_picture(states(source)[-1]) == exact_picture(replica.share))
    kept = [at for at in snapshots(source) if ".before-revert." in at]
    check("what the former source had is a snapshot", left in [picture(at) for at in kept], kept)
    check("the former source keeps nothing for its replica", not (kept_for_others(source) or known(source)), snapshots(source))
    resync = replica.replicate("--resync")
    check("the former replica cannot go on meanwhile", resync.returncode != 0 and "has the destination" in resync.stderr, resync.stderr)
    change(replica.share, random.Random(11))
    now = source.replicate("--now")
    check("what changes then is taken over", now.returncode == 0 and seen(source) == picture(replica.share), now.stderr)
    source.kill()
    source.start()
    source.replicate("--break")
    again = replica.replicate(*words, "--reverse", "--every", "1h")
    now = replica.replicate("--now")
    check("roles are exchanged once more", again.returncode == 0 and now.returncode == 0, again.stderr + now.stderr)
    check("and the replica is like the source", seen(replica) == picture(source.share))
    source.replicate("--stop")
    change(source.share, random.Random(12))
    now = replica.replicate("--now")
    check("all is as in the beginning", now.returncode == 0 and seen(replica) == picture(source.share), now.stderr)
    killed_while_exchanging([(source, words), (replica, back)], random.Random(13))


def kept_for_others(server):
    """The snapshots that a source keeps for its replicas."""
    return [at for at in snapshots(server) if ".replica-" in at]


def known(server):
    """The destinations that a source knows."""
    return json.loads(server.replicate("--destinations", "--json").stdout)["destinations"]


def killed_while_exchanging(both, dice):
    """A source is killed while it becomes a replica of its replica: it is one afterwards, or can be made one. At once, and a moment
    later, each two times."""
    (source, _), (replica, back) = both
    for at in range(4):
        replica.replicate("--break")
        change(replica.share, dice)
        before = len([at for at in snapshots(source) if ".before-revert." in at])
        starting = subprocess.Popen([PROGRAM, "share", "replicate", source.name, *back, "--reverse", "--every", "1h", "--state", source.state],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(6000):
            if len([at for at in snapshots(source) if ".before-revert." in at]) > before:
                break
            time.sleep(0.005)
        time.sleep(dice.random() * 0.1 * (at % 2))
        source.kill()
        starting.wait()
        source.start()
        told = source.replicate("--status", "--json")
        is_replica = told.returncode == 0 and json.loads(told.stdout)["state"] != "broken"
        if not is_replica:
            again = source.replicate(*back, "--reverse", "--every", "1h")
            check(f"exchange {at}: a source that was killed before can become a replica", again.returncode == 0, again.stderr)
        now = source.replicate("--now")
        check(f"exchange {at}: it is a replica", now.returncode == 0 and seen(source) == picture(replica.share), now.stderr)
        check(f"exchange {at}, {'late' if is_replica else 'early'}: it keeps nothing for its former replica",
              not (kept_for_others(source) or known(source)), snapshots(source))
        both.reverse()
        (source, _), (replica, back) = both


def races(source, words):
    """A client writes while a share is made a replica: what it was told to be written is there, or the share was empty."""
    for at in range(4):
        racer = Server(f"racer{at}")
        racer.start()
        write(os.path.join(SCRATCH, "raced"), b"x")
        writer = subprocess.Popen(
            ["smbclient", f"//127.0.0.1/{racer.name}", "-p", str(racer.smb), "-U", f"{USER}%{PASSWORD}", "-c",
             "; ".join(f"put raced r{number}" for number in range(40))],
            cwd=SCRATCH, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(0.1 * at)
        made = racer.replicate(*words, "--every", "1h")
        said = writer.communicate(timeout=300)[0]
        written = said.count("putting file")
        there = sum(name.startswith("r") for name in os.listdir(racer.share))
        if made.returncode:
            check(f"race {at}: a share that was written to is no replica, and has it all", "holds something" in made.stderr and there >= written,
                  f"{made.stderr} {written} {there}")
        else:
            now = racer.replicate("--now")
            check(f"race {at}: an empty share is a replica, and nobody wrote to it", now.returncode == 0 and written == 0 and seen(racer) == picture(source.share),
                  f"{now.stderr} {written}")
            racer.replicate("--stop")
        racer.kill()


def full(source, replica, words):
    """A second replica, whose file system is too small, beside the first."""
    small, image = os.path.join(SCRATCH, "small"), os.path.join(SCRATCH, "small.image")
    os.mkdir(small)
    with open(image, "wb") as file:
        file.truncate(256 << 20)
    run("mkfs.btrfs", "-q", image, check=True)
    run("mount", "-o", "loop", image, small, check=True)
    try:
        second = Server("second", disk=small)
        second.start()
        begun = time.time()
        second.replicate(*words, "--every", "1h", "--bandwidth", "512KiB/s")
        for _ in range(1200):
            told = second.status()
            if told["transfers"]:
                break
            time.sleep(0.1)
        took = time.time() - begun
        check("the limit of its bandwidth is kept", took >= told["bytes"] / (512 << 10), f"{took} s for {told['bytes']} bytes")
        check("a share has two replicas", second.replicate("--now").returncode == 0 and seen(second) == picture(source.share))
        before = picture(source.share)
        second.replicate("--stop")
        run("rm", "-rf", *[os.path.join(second.share, name) for name in os.listdir(second.share) if not name.startswith(".anabranch-")])
        second.replicate(*words, "--every", "1h")
        check("it is a replica again", second.replicate("--now").returncode == 0)
        write(os.path.join(source.share, "large"), os.urandom(300 << 20))
        now = second.replicate("--now")
        check("a file system that is too small is told", now.returncode != 0 and "is full" in now.stderr, now.stderr)
        check("clients see what was complete before", seen_at_once(second) == before)
        health = run("curl", "-s", f"http://127.0.0.1:{second.control}/healthz").stdout
        check("the server is degraded", health.startswith("degraded") and "share second: " in health, health)
        check("the other replica is not held up", replica.replicate("--now").returncode == 0 and seen(replica) == picture(source.share))
        device = run("findmnt", "-no", "SOURCE", small).stdout.strip()
        with open(image, "ab") as file:
            file.truncate(1 << 30)
        run("losetup", "-c", device, check=True)
        run("btrfs", "filesystem", "resize", "max", small, check=True)
        now = second.replicate("--now")
        for _ in range(20):
            if now.returncode == 0:
                break
            time.sleep(0.5)
            now = second.replicate("--now")
        check("with more room, it goes on", now.returncode == 0 and seen(second) == picture(source.share), now.stderr)
        not_served(second)
    finally:
        if second.process.poll() is None:
            second.kill()
        run("umount", "-l", small)
    os.remove(os.path.join(source.share, "large"))
    replica.replicate("--now")


def not_served(replica):
    """The snapshot that a replica shows is gone."""
    state = picture(states(replica)[-1])
    replica.kill()
    run("btrfs", "subvolume", "delete", states(replica)[-1], check=True)
    declared, replica.declared = replica.declared, []
    replica.start()
    stopped = replica.replicate("--stop")
    check("a replica that cannot be served is ended", stopped.returncode == 0, stopped.stderr)
    replica.end()
    replica.declared = declared
    replica.start()
    check("it is a share with what the last transfer has left", seen(replica) == state == picture(replica.share), seen(replica))


def broken_off(source, replica):
    state = picture(source.share)
    source.process.send_signal(signal.SIGSTOP)
    starting = subprocess.Popen([PROGRAM, "share", "replicate", replica.name, "--now", "--state", replica.state],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        if replica.status()["transferring"]:
            break
        time.sleep(0.1)
    broken = replica.replicate("--break")
    check("a replica is broken off although the source is silent", broken.returncode == 0, broken.stderr)
    check("who waits for it waits no more", starting.wait(timeout=300) != 0)
    source.process.send_signal(signal.SIGCONT)
    check("a replica is broken off", broken.returncode == 0 and replica.status()["state"] == "broken", broken.stderr)
    check("it is as it was last complete", seen(replica) == state and picture(replica.share) == state)
    write(os.path.join(SCRATCH, "local"), b"of here")
    put = replica.smbclient("put local written; del link*")
    check("clients can write to it", "NT_STATUS" not in put.stdout and os.path.exists(os.path.join(replica.share, "written")), put.stdout)
    here = picture(replica.share)
    write(os.path.join(source.share, "later"), b"of there")
    again = replica.replicate("--now")
    check("it is not brought up to date", again.returncode != 0 and "is broken off" in again.stderr, again.stderr)
    replica.kill()
    replica.start()
    check("it stays broken off after a restart", replica.status()["state"] == "broken" and seen(replica) == here)
    resync = replica.replicate("--resync")
    check("it becomes a replica again", resync.returncode == 0 and replica.status()["state"] in ("resync", "mirrored"), resync.stderr)
    now = replica.replicate("--now")
    check("it is like the source again", now.returncode == 0 and seen(replica) == picture(source.share), now.stderr)
    kept = [at for at in snapshots(replica) if ".before-revert." in at]
    check("what was changed meanwhile is a snapshot", here in [picture(at) for at in kept], kept)
    check("its state is told", replica.status()["state"] == "mirrored", replica.status())
    metrics = run("curl", "-s", f"http://127.0.0.1:{replica.control}/metrics").stdout
    check("metrics tell its age", "anabranch_replica_as_of_timestamp_seconds{share=" in metrics)
    removed = replica.command("share", "replicate", replica.name, "--stop")
    check("it becomes an ordinary share", removed.returncode == 0 and seen(replica) == picture(source.share), removed.stderr)
    check("the source keeps nothing for it", not any(".replica-" in at for at in snapshots(source)), snapshots(source))


def two_networks():
    """Two network namespaces with a link between them: a name and an address for each."""
    ends = [(f"anabranch-{os.getpid()}-{end}", f"10.78.0.{at}") for at, end in ((1, "source"), (2, "replica"))]
    (one, _), (other, _) = ends
    for name, _ in ends:
        run("ip", "netns", "add", name, check=True)
    run("ip", "-n", one, "link", "add", "link0", "type", "veth", "peer", "name", "link0", "netns", other, check=True)
    for name, address in ends:
        run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "link0", check=True)
        run("ip", "-n", name, "link", "set", "lo", "up", check=True)
        run("ip", "-n", name, "link", "set", "link0", "up", check=True)
    return ends


def remove_networks(ends):
    for name, _ in ends:
        run("ip", "netns", "del", name)


def transfer(replica):
    """How many seconds a transfer takes, from the command to its end, with what came."""
    begun = time.time()
    now = replica.replicate("--now")
    took = time.time() - begun
    check("it is brought up to date", now.returncode == 0, now.stderr + replica.tail())
    told = replica.status()
    return took, f"{told['files']} files, {told['directories']} directories, {told['bytes']} bytes"


def measure(source, replica, files, repeats):
    """How long the first transfer of many small files takes, and how long one of which 100 were changed, or none, or 1 MiB in a large file."""
    for at in range(files):
        directory = os.path.join(source.share, f"d{at // 500}")
        if at % 500 == 0:
            os.mkdir(directory)
        with open(os.path.join(directory, f"f{at}"), "wb") as file:
            file.write(os.urandom(4096))
    os.sync()
    made = replica.replicate(*set_up(source, replica), "--every", "7d")
    check("an empty share becomes a replica", made.returncode == 0, made.stderr)
    took, came = transfer(replica)
    print(f"| {files} files of 4 KiB, the first transfer | {took:.1f} s | | {came} |", flush=True)

    def repeated(name, change):
        times, came = [], ""
        for _ in range(repeats):
            change()
            # Changes of the time before a snapshot must not look like changes after it.
            time.sleep(2)
            took, came = transfer(replica)
            times.append(took)
        print(f"| {name} | {statistics.median(times):.2f} s | {min(times):.2f} to {max(times):.2f} s | {came} |", flush=True)

    def some():
        for changed in range(100):
            number = changed * (files // 100)
            with open(os.path.join(source.share, f"d{number // 500}/f{number}"), "wb") as file:
                file.write(os.urandom(4096))

    repeated(f"{files} files, 100 of them changed, each in another place", some)
    repeated(f"{files} files, none changed", lambda: None)
    check("nothing is missing", exact_picture(states(replica)[-1]) == exact_picture(source.share), states(replica))


def main():
    if "FILES" in os.environ:
        ends = two_networks()
        source, replica = Server("office", tls=True, net=ends[0]), Server("copy", tls=True, net=ends[1])
        work = lambda: measure(source, replica, int(os.environ["FILES"]), int(os.environ.get("REPEATS", "5")))
    else:
        ends = []
        source, replica = Server("office", tls=True), Server("copy")
        work = lambda: all_of_it(source, replica)
    try:
        source.start()
        replica.start()
        work()
    finally:
        for server in (source, replica):
            if server.process and server.process.poll() is None:
                server.kill()
            if failed:
                print(f"--- {server.name}\n{server.tail()}")
        remove_networks(ends)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0)


def all_of_it(source, replica):
    words = set_up(source, replica)
    populate(source.share)
    refusals(source, replica, words)
    without_handles(source, replica, words)
    first_transfer(source, replica, words)
    with open(os.path.join(source.share, "d", "file 19"), "rb") as file:
        check("a client of NFS reads the replica", nfs_has(replica, "d/file 19", file.read()))
    later_transfers(source, replica)
    races(source, words)
    full(source, replica, words)
    kills(source, replica, int(os.environ.get("KILLS", "4")))
    exchanged(source, replica, words)
    broken_off(source, replica)
    for server in (source, replica):
        check(f"the server {server.name} ends", server.end() == 0, server.tail())
        with open(os.path.join(server.at, "log")) as log:
            check(f"the server {server.name} has not panicked", "panicked" not in log.read())


main()
