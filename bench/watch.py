"""Observes processes from outside: which threads ran or waited, and which connections they held."""

import bisect
import contextlib
import datetime
import math
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from programs import Settings

EXPLAINED_COUNT_MAX = 3
# The length of an interval of a load's timeline.
STEP_MS = 10


class Watch:
    """Samples every thread of some processes: how long it ran, and how long it waited for a
    processor. The rest of the time it slept."""

    PERIOD = 0.005
    # The thread that makes the changes. Requests do not wait for it, nor it for them.
    CONTROLLER = "ballast-change"
    WITNESS = "witness"
    # The processes that take part in a request, and in a change.
    OF_REQUESTS = ("ballast", "load", "origin")
    OF_CHANGES = ("ballast", "chaos")

    def __init__(self, **processes):
        self.processes = processes
        self.files, self.names, self.samples = {}, {}, []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for file in self.files.values():
            os.close(file)

    def find(self):
        for process, pid in self.processes.items():
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    key, path = (process, task), pathlib.Path(f"/proc/{pid}/task/{task}")
                    if key not in self.files:
                        self.names[key] = (path / "comm").read_text().strip()
                        self.files[key] = os.open(path / "schedstat", os.O_RDONLY)

    def sample(self):
        round_number = 0
        while not self.stop.is_set():
            if round_number % 20 == 0:
                self.find()
            round_number += 1
            sample = {}
            for key, file in self.files.items():
                with contextlib.suppress(OSError, ValueError):
                    ran, waited, _ = os.pread(file, 100, 0).split()
                    sample[key] = int(ran), int(waited)
            self.samples.append((time.time(), sample, stolen_ms()))
            self.stop.wait(self.PERIOD)

    def around(self, began, ended):
        """The times of the samples before and after; how long each thread ran and waited for a
        processor between them, and how long the host did not run this machine, in
        milliseconds."""
        if not self.samples:
            return began, ended, {}, 0.0
        before = bisect.bisect_right(self.samples, began, key=lambda one: one[0]) - 1
        after = bisect.bisect_left(self.samples, ended, key=lambda one: one[0])
        since, was, stolen = self.samples[max(before, 0)]
        until, now, stolen_then = self.samples[min(after, len(self.samples) - 1)]
        usage = {
            key: tuple((n - w) / 1e6 for n, w in zip(now[key], was[key]))
            for key in now.keys() & was.keys()
        }
        return since, until, usage, stolen_then - stolen

    def by_others_ms(self, began, ended, is_change=False):
        """For how long the processes of a request (or of a change) had no processor because
        others had them: the host of the machine, or programs that are not ours. A thread that
        waited longer than all our other threads ran waited for a foreign program. Of each process
        the thread that waited longest counts, because a request is in one process at a time."""
        _, _, usage, stolen = self.around(began, ended)
        ran_in_all = sum(ran for ran, _ in usage.values())
        waits = dict.fromkeys(self.processes, 0.0)
        for key, (ran, waited) in usage.items():
            process, name = key[0], self.names[key]
            takes_part = process in self.OF_CHANGES if is_change else process in self.OF_REQUESTS
            if takes_part and (is_change or name != self.CONTROLLER) and name != self.WITNESS:
                waits[process] = max(waits[process], waited - (ran_in_all - ran))
        return stolen + sum(waits.values())

    def own_ms(self, began, ended, is_change=False):
        """How long something took, without the time that others had the processors."""
        return max(0.0, (ended - began) * 1e3 - self.by_others_ms(began, ended, is_change))

    def describe(self, began, ended):
        """What all processes did around that time, one line for each."""
        since, until, usage, stolen = self.around(began, ended)
        lines = [f"in {(until - since) * 1e3:.0f} ms around it, ran + waited for a processor:"]
        for process in self.processes:
            shown = [
                f"{self.names[key]} {ran:.1f} + {waited:.1f}"
                for key, (ran, waited) in sorted(usage.items())
                if key[0] == process and ran + waited > 0.05
            ]
            lines.append(f"  {process}: {', '.join(shown) or 'all slept'}")
        if stolen:
            lines.append(f"  not given to this machine by its host: {stolen:.0f} ms")
        return lines


def watching(proxy, load):
    """A watch over all processes of a measurement."""
    return Watch(
        ballast=proxy.process.pid,
        load=load.process.pid,
        origin=Settings.origin_pid,
        chaos=os.getpid(),
    )


class Windows:
    """Alternates quiet periods and periods with changes, of equal total length, under one load:
    the worst requests of both are compared. Disturbances of the machine affect both."""

    SETTLED = 0.05

    def __init__(self, seen):
        self.seen = seen
        self.journal = []
        self.spans = {"quiet": [], "changing": []}

    def turn(self, work):
        began = time.time()
        work()
        time.sleep(self.SETTLED)
        ended = time.time()
        self.spans["changing"].append((began, ended))
        time.sleep(ended - began)
        self.spans["quiet"].append((ended, time.time()))

    def timed(self, name, action):
        began = time.time()
        said = action()
        ended = time.time()
        if said and re.search("No such|Failed|Unknown|Require|ALERT", said):
            raise RuntimeError(said[:400])
        self.journal.append((began, ended, name))

    def took(self, name):
        """How long each such change took, in milliseconds."""
        return [
            self.seen.own_ms(since, until, is_change=True)
            for since, until, what in self.journal
            if what == name
        ]

    def slowest(self, counted, kind):
        """As `longest`, for the requests that ended in periods of this kind."""
        return longest(counted, self.seen, self.spans[kind])


def stolen_ms():
    """How long the host did not run this machine's processors so far (`steal`)."""
    with open("/proc/stat") as file:
        fields = file.readline().split()
    return int(fields[8]) * 1e3 / os.sysconf("SC_CLK_TCK")


def awake(*runs):
    """How late the witness thread of the load woke at worst: delays of the machine itself."""
    late = ", ".join(f"{one['machine']['late_us']['max'] / 1e3:.1f}" for one in runs)
    return f"{late} ms"


def longest(counted, seen, spans=((0.0, math.inf),)):
    """The longest request that ended in one of the spans, in milliseconds, without the time that
    others had the processors; the same including it; and how many intervals of the timeline had a
    request of more than 5 ms. The longest request of each interval is known."""
    start, found, whole = counted["began_unix_s"], [0.0], [0.0]
    length = STEP_MS / 1e3
    for interval in counted["timeline"]:
        at, took_ms = start + interval["at_ms"] / 1e3, interval["latency_max_us"] / 1e3
        if any(since < at <= until for since, until in spans):
            whole.append(took_ms)
            if took_ms > 5:
                # It ended within the interval.
                took_ms = max(0.0, took_ms - seen.by_others_ms(at - took_ms / 1e3, at + length))
            found.append(took_ms)
    return max(found), max(whole), sum(one > 5 for one in found)


def explain(counted, journal, seen, above_ms=0.0):
    """Lines of text about the slowest requests: when they were, and what every thread did then, so
    that a stall of the machine can be told from one of ours."""
    start, lines, told = counted["began_unix_s"], [], []
    slowest = []
    for slow in counted["slowest"]:
        ended = start + slow["at_ms"] / 1e3
        began = ended - slow["latency_us"] / 1e6
        if slow["latency_us"] / 1e3 >= above_ms:
            slowest.append((seen.own_ms(began, ended), began, ended, slow))
    for _, began, ended, slow in sorted(slowest, key=lambda one: -one[0]):
        if any(abs(ended - other) < 0.1 for other in told) or len(told) >= EXPLAINED_COUNT_MAX:
            continue
        told.append(ended)
        at = datetime.datetime.fromtimestamp(began).time().isoformat("milliseconds")
        lines.append(f"{slow['latency_us'] / 1e3:.1f} ms: due at {at}, {began - start:.3f} s into the run")
        late = max(
            (
                stall["late_us"] / 1e3
                for stall in counted["machine"]["longest"]
                if began <= start + stall["at_ms"] / 1e3 <= ended + 0.002
            ),
            default=0.0,
        )
        lines.append(f"  a thread that only sleeps woke {late:.1f} ms late")
        for since, until, what in journal:
            if since <= ended and until >= began:
                when = f"from {(since - began) * 1e3:+.1f} to {(until - began) * 1e3:+.1f} ms"
                lines.append(f"  meanwhile {what}, {when}")
        others = seen.by_others_ms(began, ended)
        if others > 0.5:
            lines.append(f"  others had the processors for {others:.1f} ms of it, which does not count")
        lines += [f"  {line}" for line in seen.describe(began, ended)]
    return lines


def freeze(pid):
    """Stops all threads of a process."""
    os.kill(pid, signal.SIGSTOP)
    for task in os.listdir(f"/proc/{pid}/task"):
        stat = pathlib.Path(f"/proc/{pid}/task/{task}/stat")
        while stat.read_text().rsplit(")", 1)[1].split()[0] not in "TtZX":
            time.sleep(0.001)


def held(pid, port):
    """The clients' ports of connections to `port` that a stopped process has accepted and not
    answered yet."""
    said = subprocess.run(
        ["ss", "-tinepOH", f"sport = :{port}"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    ports = set()
    for line in said.splitlines():
        state, _, _, _, peer = line.split()[:5]
        answered = "bytes_sent:" in line
        if state in ("ESTAB", "CLOSE-WAIT") and re.search(rf"\bpid={pid},", line) and not answered:
            ports.add(int(peer.rsplit(":", 1)[1]))
    return ports
