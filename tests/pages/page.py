"""Runs the commands of a page in their order, and compares what they print with what the page shows.

    page.py PAGE LEFT-OUT

How a page is written is in CONTRIBUTING.md. LEFT-OUT of its blocks are not run, or only with the programs of Debian sid (NEWER=1): no
more, and no fewer. Each command gets a terminal of its own, as its reader has, and the directory in which the command before was. Where
it asks for a password, it gets that of the labs: alice-Passw0rd for alice.
"""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from dataclasses import dataclass, field, replace

SECONDS_AT_MOST = 120
NEWER = os.environ["NEWER"] == "1"
CLIENT = os.environ["LAB_STATE"] + "/client"
CONFIGURATION = "/etc/anabranch/anabranch.toml"
SETTINGS = "/etc/anabranch/conf.d/local.toml"
DIRECTORY = "/run/page.directory"

# What differs from run to run, and what stands for it in the comparison.
VARIES = [
    (r"\b[0-9a-f]{64}\b", "TOKEN"),
    (r"\bS-1-5-21-\d+-\d+-\d+", "S-1-5-21-DOMAIN"),
    (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ [0-9:]{8} \d{4}\b", "TIME"),
    (r"\bthe same as that of\b|\b\d s (ahead of|behind) that of\b", "CLOCK"),
    (r"\b\d+ (ms|s|min)\b", "DURATION"),
    (r"\b(inf|[0-9.]+) (k[bB]/s|KiloBytes/sec)", "RATE"),
    (r"\bAnabranch \d+\.\d+\.\d+", "Anabranch VERSION"),
    (r"\b\d+ blocks", "N blocks"),
]
# How a command that fails says so.
FAILS = re.compile(r"^error: |^mount\.|NT_STATUS_")
# The age of the lab's domain decides whether kinit says this.
PASSED_OVER = re.compile(r"Warning: Your password will expire in ")

COMMENT = re.compile(r"<!-- (newer\b)? ?(client\b)? ?(?:\$ (.*?)|not tested: (.*?))? ?-->", re.DOTALL)


@dataclass(frozen=True)
class How:
    """How a block is run, as a comment before it says."""
    newer: bool = False
    on_client: bool = False
    not_tested: str | None = None


@dataclass
class Step:
    """A command, or settings for the server (`command` is None)."""
    line: int
    how: How
    command: str | None
    shown: list[str] = field(default_factory=list)
    hidden: bool = False
    block: int = 0


def wrong(line, why):
    print(f"FAIL line {line}: {why}", flush=True)


def indentation(line):
    return len(line) - len(line.lstrip(" "))


class Page:
    """The steps of a page, read from its top to its end."""

    def __init__(self, text):
        self.lines = text.split("\n")
        self.steps, self.blocks, self.how = [], 0, How()
        at = 0
        while at < len(self.lines):
            line = self.lines[at]
            is_begin = at == 0 or not self.lines[at - 1].strip() or self.lines[at - 1].rstrip().endswith("-->")
            if line.lstrip().startswith("<!--"):
                at = self.comment(at)
            elif line.lstrip().startswith("```"):
                at = self.fenced(at)
            elif is_begin and indentation(line) >= 4 and line.strip():
                at = self.indented(at)
            else:
                at = self.text(at)
        self.has_all()

    def end(self, at, is_last):
        """The line behind the last one of what begins at a line."""
        while at < len(self.lines) and not is_last(self.lines[at]):
            at += 1
        return at + 1

    def comment(self, at):
        end = self.end(at, lambda line: "-->" in line)
        said = COMMENT.fullmatch("\n".join(self.lines[at:end]).strip())
        if said is None:
            wrong(at + 1, "a comment is `$ COMMAND` or `not tested: WHY`, with `newer` or `client` before it or alone")
            return end
        newer, on_client, hidden, not_tested = said.groups()
        if newer and not NEWER:
            not_tested = "it needs programs of Debian sid: tests/pages/run --newer"
        self.how = How(bool(newer), bool(on_client), not_tested)
        if hidden is not None:
            self.steps.append(Step(at + 1, self.how, hidden, hidden=True))
            self.how = How()
        return end

    def fenced(self, at):
        end = self.end(at + 1, lambda line: line.lstrip().startswith("```"))
        inside = self.lines[at + 1:end - 1]
        if self.lines[at].strip() == "```toml":
            self.blocks += 1
            self.steps.append(Step(at + 2, self.how, None, [line[indentation(self.lines[at]):] for line in inside], block=self.blocks))
            self.how = How()
        else:
            self.block(at + 1, [line[indentation(self.lines[at]):] for line in inside])
        return end

    def indented(self, at):
        width = indentation(self.lines[at])
        end = self.end(at, lambda line: line.strip() and indentation(line) < width) - 1
        self.block(at, [line[width:] for line in self.lines[at:end]])
        return end

    def block(self, at, lines):
        """Commands with what they print; or something else."""
        self.blocks += 1
        how, self.how = self.how, How()
        first = next((line.split()[0] for line in lines if line.strip()), "")
        if first != "$":
            if shutil.which(first):
                wrong(at + 1, f"`{first}` is a command, and stands without `$ `")
            return
        for number, line in enumerate(lines, at + 1):
            last = self.steps[-1] if self.steps else None
            if line.startswith("$ "):
                self.steps.append(Step(number, how, line[2:], block=self.blocks))
            elif last.command.endswith("\\") and not last.shown:
                last.command += "\n" + line
            else:
                last.shown.append(line)

    def text(self, at):
        if self.lines[at].strip() and self.how != How():
            wrong(at + 1, "the comment before this is about a block, and there is none")
            self.how = How()
        return at + 1

    def has_all(self):
        """No command stands where it is not seen, as one of a paragraph would."""
        seen = {step.line for step in self.steps}
        for number, line in enumerate(self.lines, 1):
            if line.lstrip().startswith("$ ") and number not in seen:
                wrong(number, "this command is in no block")


def answer(terminal, prompt, asked):
    """Gives the password of the user who is named, or was last, once the program has switched the echo off."""
    named = re.search(r"(?:of|for) \[?(?:[^\]\\:]*\\)?([\w-]+)", prompt)
    asked = named.group(1) if named else asked
    for _ in range(1000):
        if not termios.tcgetattr(terminal)[3] & termios.ECHO:
            break
        time.sleep(0.01)
    os.write(terminal, f"{asked}-Passw0rd\n".encode())
    return asked


def converse(terminal):
    """What is printed on a terminal until it is closed, and whether it was closed in time."""
    until, printed, answered, asked = time.monotonic() + SECONDS_AT_MOST, b"", 0, ""
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # it is closed
            return printed, True
        printed += part
        last = printed[answered:].decode(errors="replace").replace("\r", "").split("\n")[-1]
        if re.match(r"(Password|Again).*: ?$", last):
            answered, asked = len(printed), answer(terminal, last, asked)
    return printed, False


def run(command):
    """What a command prints, and its status; None if it does not end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-c", f'cd "$(cat {DIRECTORY})"\ntrap "pwd >{DIRECTORY}" EXIT\n{command}'])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    printed, in_time = converse(terminal)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return printed.decode(errors="replace").replace("\r", ""), status if in_time else None


def run_on_client(command):
    """The same on the client (tests/lab/guest/commands.sh), which has no terminal."""
    with open(f"{CLIENT}/command.new", "w", encoding="utf-8") as file:
        file.write(command + "\n")
    os.rename(f"{CLIENT}/command.new", f"{CLIENT}/command")
    until = time.monotonic() + SECONDS_AT_MOST
    while not os.path.exists(f"{CLIENT}/status"):
        if time.monotonic() > until:
            return "", None
        time.sleep(0.05)
    with open(f"{CLIENT}/printed", encoding="utf-8") as printed, open(f"{CLIENT}/status", encoding="utf-8") as status:
        said = printed.read(), int(status.read())
    os.remove(f"{CLIENT}/status")
    return said


def lasting(line):
    for pattern, stands in VARIES:
        line = re.sub(pattern, stands, line)
    # What varies has several widths, and so have the columns of a table.
    return re.sub(r"(?<=\S)\s{2,}", "  ", line.rstrip())


def trimmed(lines):
    lines = [line for line in lines if not PASSED_OVER.match(line)]
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def is_shown(printed, shown):
    """Whether the lines are those that are shown; `...` alone on a line stands for any number of them."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(lasting(line)) + "\n" for line in trimmed(shown))
    return re.fullmatch(pattern, "".join(lasting(line) + "\n" for line in printed)) is not None


def perform(step):
    """What is wrong with a step (None: nothing), and what it printed."""
    command = step.command
    if command is None:
        with open(SETTINGS, "w", encoding="utf-8") as file:
            file.write("\n".join(step.shown) + "\n")
        command = f"anabranch check {CONFIGURATION}"
    elif step.hidden:
        command = f"set -e\n{command}"
    if step.how.on_client:
        said, status = run_on_client(command)
    else:
        said, status = run(f"PATH=$LAB_STATE/newer:$PATH\n{command}" if step.how.newer else command)
    printed = trimmed(said.split("\n"))
    if status is None:
        return f"it does not end within {SECONDS_AT_MOST} s", printed
    is_compared = step.command is not None and not step.hidden
    fails = is_compared and any(FAILS.search(line) for line in step.shown)
    if (status != 0) != fails:
        return f"it ended with status {status}", printed
    return ("it prints something else" if is_compared and not is_shown(printed, step.shown) else None), printed


def main(page, left_out):
    with open(page, encoding="utf-8") as file:
        steps = Page(file.read()).steps
    with open(DIRECTORY, "w", encoding="utf-8") as file:
        file.write(os.getcwd() + "\n")
    not_always, commands = {}, 0
    for step in steps:
        if not step.hidden and step.how != replace(step.how, newer=False, not_tested=None):
            not_always[step.block] = step
        if step.how.not_tested:
            continue
        what = "the settings" if step.command is None else step.command.split("\n")[0]
        why, printed = perform(step)
        if why is not None:
            wrong(step.line, f"{what}: {why}; it printed:")
            print("".join(f"  | {line}\n" for line in printed), end="", flush=True)
        elif not step.hidden:
            commands += 1
            print(f"ok line {step.line}: {what}", flush=True)
    for step in not_always.values():
        if step.how.not_tested:
            print(f"not tested: {os.path.basename(page)}:{step.line}: {step.how.not_tested}")
    told = "ok" if len(not_always) == left_out else "FAIL"
    print(f"{told} the end of the page: {commands} steps are right; {len(not_always)} blocks are not tested, or with --newer ({left_out})")


main(sys.argv[1], int(sys.argv[2]))
