"""System calls of a process, counted in a short pass of its own: `perf stat` where the kernel lets
it, else `strace -c`, which slows the process down, else not at all."""

import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from measuring.kernel import tree

ALL = "raw_syscalls:sys_enter"
# Those that a proxy's data path may make, by which an engineer sees what they are.
NAMES = (
    "accept4 close connect epoll_ctl epoll_pwait epoll_wait futex getsockopt io_uring_enter read readv recvfrom recvmsg "
    "sendmmsg sendmsg sendto setsockopt shutdown socket splice timerfd_settime write writev"
).split()
ATTACH_SECONDS_MAX = 5


@functools.cache
def method():
    """`perf`, `strace` or None; says once, loudly, what is missing."""
    if shutil.which("perf"):
        tried = subprocess.run(["perf", "stat", "-x,", "-e", ALL, "true"], capture_output=True, text=True)
        if found := re.search(rf"^(\d+),,{ALL}", tried.stderr, re.M):
            if int(found[1]):
                return "perf"
    if shutil.which("strace") and subprocess.run(["strace", "-c", "true"], capture_output=True).returncode == 0:
        print("bench: perf cannot count system calls here; strace does, and slows the programs down", file=sys.stderr)
        return "strace"
    print("bench: SYSTEM CALLS ARE NOT COUNTED: neither perf (as root) nor strace can", file=sys.stderr)
    return None


def counted_during(pid, work):
    """System calls of the process and its descendants while `work` ran, by name and as `all`; and
    what `work` gave. None for the calls where nothing can count them."""
    how = method()
    if not how:
        return None, work()
    with tempfile.TemporaryFile("w+") as said:
        counter, enable = COUNTERS[how](tree(pid), said)
        try:
            enable()
            given = work()
        finally:
            counter.send_signal(signal.SIGINT)
            counter.wait(30)
        said.seek(0)
        text = said.read()
    return (of_perf(text) if how == "perf" else of_strace(text)), given


def perf(pids, said):
    """Starts perf; counting begins when the function that is given back is called."""
    events = [ALL, *(f"syscalls:sys_enter_{name}" for name in NAMES if name in known())]
    (told, tell), (answered, answer) = os.pipe(), os.pipe()
    command = ["perf", "stat", "-x,", "-e", ",".join(events), "-p", ",".join(map(str, pids))]
    command += ["--delay=-1", f"--control=fd:{told},{answer}"]
    counter = subprocess.Popen(command, stderr=said, pass_fds=(told, answer))
    os.close(told)
    os.close(answer)

    def enable():
        with os.fdopen(tell, "wb") as pipe, os.fdopen(answered, "rb") as answers:
            pipe.write(b"enable\n")
            pipe.flush()
            answers.read(4)  # `ack` and a line's end, or the end of a perf that failed

    return counter, enable


def strace(pids, said):
    """Starts strace; it counts when the function that is given back has returned."""
    words = [word for pid in pids for word in ("-p", str(pid))]
    counter = subprocess.Popen(["strace", "-c", "-f", *words], stderr=said)

    def enable():
        deadline = time.monotonic() + ATTACH_SECONDS_MAX
        while time.monotonic() < deadline and counter.poll() is None:
            traced = (pathlib.Path(f"/proc/{pid}/status").read_text() for pid in pids)
            if not any(re.search(r"TracerPid:\s+0\b", text) for text in traced):
                return
            time.sleep(0.01)

    return counter, enable


COUNTERS = {"perf": perf, "strace": strace}


@functools.cache
def known():
    """The calls that this kernel can tell apart."""
    said = subprocess.run(["perf", "list", "syscalls:sys_enter_*"], capture_output=True, text=True).stdout
    return set(re.findall(r"syscalls:sys_enter_(\w+)", said))


def of_perf(said):
    found = {}
    for count, name in re.findall(r"^(\d+),,(?:raw_)?syscalls:sys_enter(?:_(\w+))?,", said, re.M):
        found[name or "all"] = int(count)
    return found if "all" in found else None


def of_strace(said):
    found = {}
    for line in said.splitlines():
        words = line.split()
        if len(words) >= 5 and words[0].replace(".", "").isdigit() and words[3].isdigit():
            found["all" if words[-1] == "total" else words[-1]] = int(words[3])
    return found if "all" in found else None
