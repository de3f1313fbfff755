"""Runs the commands of a page in their order, and compares what they print with what the page shows.

    page.py PAGE LEFT-OUT

How a page is written is in CONTRIBUTING.md. LEFT-OUT blocks of the page may say `not tested`, no more and no fewer. Each command gets
a terminal of its own, as its reader has, and the directory that the command before has left. Where it asks for a password, it gets
that of the labs: alice-Passw0rd for alice.
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
from dataclasses import dataclass, field

SECONDS_AT_MOST = 120
SETTINGS = "/etc/anabranch/conf.d/page.toml"
DIRECTORY = "/run/page.directory"
CLIENT = os.environ["LAB_STATE"] + "/client"

# What differs from run to run, and what stands for it in the comparison.
VARIES = [
    (r"\b[0-9a-f]{64}\b", "TOKEN"),
    (r"\bS-1-5-21-\d+-\d+-\d+", "S-1-5-21-DOMAIN"),
    (r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z", "TIME"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d+ [0-9:]{8} \d{4}\b", "TIME"),
    (r"\b\d+ (ms|s|min)\b", "DURATION"),
    (r"\b[0-9.]+ kb/s", "RATE"),
    (r"\b\d+ blocks", "N blocks"),
    (r"\b(\d+(?:\.\d+){3}):\d{5}\b", r"\1:PORT"),
]
# The age of the lab's domain decides whether kinit says this.
PASSED_OVER = re.compile(r"Warning: Your password will expire in ")


@dataclass
class Step:
    """A command, or settings for the server (`command` is None)."""
    line: int
    command: str | None
    shown: list[str] = field(default_factory=list)
    hidden: bool = False
    on_client: bool = False
    not_tested: str | None = None
    block: int = 0


def refuse(line, why):
    print(f"FAIL line {line}: {why}", flush=True)


def indentation(line):
    return len(line) - len(line.lstrip(" "))


def of_block(block, first, number, **how):
    """The steps of a block without its indentation; `first` is the number of its first line."""
    if not block[0].startswith("$ "):
        word = block[0].split()[0] if block[0].split() else ""
        if shutil.which(word):
            refuse(first, f"`{word}` is a command, and stands without `$ `")
        return []
    found = []
    for number_of_line, line in enumerate(block, first):
        if found and found[-1].command.endswith("\\") and not found[-1].shown:
            found[-1].command += "\n" + line
        elif line.startswith("$ "):
            found.append(Step(number_of_line, line[2:], block=number, **how))
        else:
            found[-1].shown.append(line.rstrip())
    return found


def steps_of(text):
    lines = text.split("\n")
    found, how, number, at = [], {}, 0, 0
    while at < len(lines):
        line, begin, number = lines[at], at, number + 1
        if line.lstrip().startswith("<!-- "):
            while "-->" not in lines[at]:
                at += 1
            said = "\n".join(lines[begin:at + 1]).strip().removeprefix("<!-- ").removesuffix("-->").strip()
            on_client = said.startswith("client")
            said = said.removeprefix("client").lstrip()
            if said.startswith("$ "):
                found.append(Step(begin + 1, said[2:], hidden=True, on_client=on_client))
            elif on_client and not said:
                how = {"on_client": True}
            elif said.startswith("not tested: "):
                how = {"not_tested": said.removeprefix("not tested: ")}
            else:
                refuse(begin + 1, "a comment is `$ COMMAND`, `client`, `client $ COMMAND` or `not tested: WHY`")
            at += 1
            continue
        if line.lstrip().startswith("```"):
            indented = indentation(line)
            at += 1
            while not lines[at].lstrip().startswith("```"):
                at += 1
            block = [inside[indented:] for inside in lines[begin + 1:at]]
            if line.strip() == "```toml":
                found.append(Step(begin + 2, None, block, block=number, **how))
            else:
                found += of_block(block, begin + 2, number, **how)
            how = {}
        elif indentation(line) >= 4 and line.strip() and (at == 0 or not lines[at - 1].strip()):
            indented = indentation(line)
            while at + 1 < len(lines) and (not lines[at + 1].strip() or indentation(lines[at + 1]) >= indented):
                at += 1
            found += of_block([inside[indented:] for inside in lines[begin:at + 1]], begin + 1, number, **how)
            how = {}
        elif line.strip() and how:
            refuse(begin + 1, "a comment about a block stands before it")
            how = {}
        at += 1
    return found


def answer(terminal, prompt, asked):
    """Gives the password, once the program has switched the echo off."""
    named = re.search(r"(?:of|for) \[?(?:[^\]\\:]*\\)?([\w-]+)", prompt)
    asked = named.group(1) if named else asked
    for _ in range(1000):
        if not termios.tcgetattr(terminal)[3] & termios.ECHO:
            break
        time.sleep(0.01)
    os.write(terminal, f"{asked}-Passw0rd\n".encode())
    return asked


def run(command):
    """What the command prints on its terminal, and its status; None if it does not end."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "-c", f'cd "$(cat {DIRECTORY})"\ntrap "pwd >{DIRECTORY}" EXIT\n{command}'])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 250, 0, 0))
    until, printed, answered, asked = time.monotonic() + SECONDS_AT_MOST, b"", 0, ""
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # it is closed
            part = b""
        if not part:
            break
        printed += part
        last = printed[answered:].decode(errors="replace").replace("\r", "").split("\n")[-1]
        if re.match(r"(Password|Again).*: ?$", last):
            answered, asked = len(printed), answer(terminal, last, asked)
    else:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return printed.decode(errors="replace"), None
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return printed.decode(errors="replace").replace("\r", ""), status


def run_on_client(command):
    """The same on the client, which has no terminal."""
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
    # What varies is of several widths, and so are the columns of a table.
    return re.sub(r"(?<=\S)\s{2,}", "  ", line.rstrip())


def is_shown(printed, shown):
    """Whether the lines are those that are shown; `...` alone on a line stands for any number of them."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(lasting(line)) + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(lasting(line) + "\n" for line in printed)) is not None


def trimmed(lines):
    lines = list(lines)
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def perform(step):
    """Why the step is not as the page has it; None if it is."""
    command = step.command
    if command is None:
        with open(SETTINGS, "w", encoding="utf-8") as file:
            file.write("\n".join(step.shown) + "\n")
        command = "anabranch check /etc/anabranch/anabranch.toml"
    said, status = run_on_client(command) if step.on_client else run(command)
    printed, shown = trimmed(line for line in said.split("\n") if not PASSED_OVER.match(line)), trimmed(step.shown)
    if status is None:
        return f"it does not end within {SECONDS_AT_MOST} s", printed
    if step.hidden or step.command is None:
        return (f"it ended with status {status}" if status else None), printed
    may_fail = any(line.startswith("error: ") or "NT_STATUS_" in line for line in shown)
    if (status != 0) != may_fail:
        return f"it ended with status {status}", printed
    return (None if is_shown(printed, shown) else "it prints something else"), printed


def main(page, left_out):
    with open(page, encoding="utf-8") as file:
        steps = steps_of(file.read())
    with open(DIRECTORY, "w", encoding="utf-8") as file:
        file.write(os.getcwd() + "\n")
    blocks = {}
    for step in steps:
        if step.not_tested:
            blocks[step.block] = (step.line, step.not_tested)
            continue
        what = "the settings" if step.command is None else step.command.split("\n")[0]
        wrong, printed = perform(step)
        if wrong is None:
            if not step.hidden:
                print(f"ok line {step.line}: {what}", flush=True)
            continue
        print(f"FAIL line {step.line}: {what}: {wrong}; it printed:", flush=True)
        for line in printed:
            print(f"  | {line}")
    for line, why in blocks.values():
        print(f"not tested: {os.path.basename(page)}:{line}: {why}")
    commands = sum(1 for step in steps if step.command and not step.hidden and not step.not_tested)
    told = "ok" if len(blocks) == left_out else "FAIL"
    print(f"{told} the end of the page: {commands} commands were run; {len(blocks)} of {left_out} blocks are not tested")


main(sys.argv[1], int(sys.argv[2]))
