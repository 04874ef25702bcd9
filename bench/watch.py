"""What was seen of processes from outside: who ran, who waited, who held what, and when."""

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

EXPLAINED_COUNT_MAX = 3
# Stretches of a load's timeline.
STEP_MS = 10


class Watch:
    """What every thread of some processes does: how long it ran, and how long it waited for a
    processor. In the rest of the time it slept."""

    PERIOD = 0.005
    # Makes the changes. Who is served does not wait for it, nor it for them.
    CHIEF = "ballast-change"
    WITNESS = "witness"
    # Who is on the way of a request, and of a change.
    SERVES = ("ballast", "load", "origin")
    ASKED = ("ballast", "chaos")

    def __init__(self, **processes):
        self.processes = processes
        self.files, self.names, self.samples = {}, {}, []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

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

    def look(self):
        turn = 0
        while not self.stop.is_set():
            if turn % 20 == 0:
                self.find()
            turn += 1
            sample = {}
            for key, file in self.files.items():
                with contextlib.suppress(OSError, ValueError):
                    ran, waited, _ = os.pread(file, 100, 0).split()
                    sample[key] = int(ran), int(waited)
            self.samples.append((time.time(), sample, stolen_ms()))
            self.stop.wait(self.PERIOD)

    def around(self, began, ended):
        """From when to when there are samples around that time; what each thread ran and waited
        for a processor between them, and what the host kept to itself, in milliseconds."""
        if not self.samples:
            return began, ended, {}, 0.0
        before = bisect.bisect_right(self.samples, began, key=lambda one: one[0]) - 1
        after = bisect.bisect_left(self.samples, ended, key=lambda one: one[0])
        since, was, stolen = self.samples[max(before, 0)]
        until, now, stolen_then = self.samples[min(after, len(self.samples) - 1)]
        deeds = {
            key: tuple((n - w) / 1e6 for n, w in zip(now[key], was[key]))
            for key in now.keys() & was.keys()
        }
        return since, until, deeds, stolen_then - stolen

    def by_others_ms(self, began, ended, chief=False):
        """For how long those on the way of a request (or of a change: `chief`) could do nothing
        then because processors were with others: the host of the machine, or programs that are
        none of ours. A thread that waited longer than all of ours ran besides it waited for
        somebody else; of each process, the thread that did so longest, for a request is with one
        process at a time."""
        _, _, deeds, stolen = self.around(began, ended)
        ran_in_all = sum(ran for ran, _ in deeds.values())
        waits = dict.fromkeys(self.processes, 0.0)
        for key, (ran, waited) in deeds.items():
            process, name = key[0], self.names[key]
            is_on_the_way = process in self.ASKED if chief else process in self.SERVES
            if is_on_the_way and (chief or name != self.CHIEF) and name != self.WITNESS:
                waits[process] = max(waits[process], waited - (ran_in_all - ran))
        return stolen + sum(waits.values())

    def own_ms(self, began, ended, chief=False):
        """How long something took, without what it waited for others."""
        return max(0.0, (ended - began) * 1e3 - self.by_others_ms(began, ended, chief))

    def told(self, began, ended):
        """In words, what all did around that time: one line for each process."""
        since, until, deeds, stolen = self.around(began, ended)
        lines = [f"in {(until - since) * 1e3:.0f} ms around it, ran + waited for a processor:"]
        for process in self.processes:
            shown = [
                f"{self.names[key]} {ran:.1f} + {waited:.1f}"
                for key, (ran, waited) in sorted(deeds.items())
                if key[0] == process and ran + waited > 0.05
            ]
            lines.append(f"  {process}: {', '.join(shown) or 'all slept'}")
        if stolen:
            lines.append(f"  not given to this machine by its host: {stolen:.0f} ms")
        return lines


class Windows:
    """Quiet times and times with changes, one after the other and equally long in all, under one
    load: the worst request of the ones is compared with the worst of the others. Whatever else
    the machine does, it does to both."""

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

    def timed(self, name, deed):
        began = time.time()
        said = deed()
        ended = time.time()
        if said and re.search("No such|Failed|Unknown|Require|ALERT", said):
            raise RuntimeError(said[:400])
        self.journal.append((began, ended, name))

    def took(self, name):
        """How long each such change took, in milliseconds."""
        return [
            self.seen.own_ms(since, until, chief=True)
            for since, until, what in self.journal
            if what == name
        ]

    def slowest(self, counted, kind):
        """As `longest`, of the requests that ended in such times."""
        return longest(counted, self.seen, self.spans[kind])


def stolen_ms():
    """What the host did not give to this machine's processors until now (`steal`)."""
    with open("/proc/stat") as file:
        fields = file.readline().split()
    return int(fields[8]) * 1e3 / os.sysconf("SC_CLK_TCK")


def awake(*runs):
    """How late a thread of the load woke at worst that wanted nothing else: what the machine does
    to anybody."""
    late = ", ".join(f"{one['machine']['late_us']['max'] / 1e3:.1f}" for one in runs)
    return f"{late} ms"


def longest(counted, seen, spans=((0.0, math.inf),)):
    """The longest request that ended in one of the spans, in milliseconds, without what it waited
    for others; the same with it; and how many stretches of the timeline had one of more than 5 ms.
    Of each stretch the longest is known."""
    start, found, whole = counted["began_unix_s"], [0.0], [0.0]
    length = STEP_MS / 1e3
    for stretch in counted["timeline"]:
        at, took_ms = start + stretch["at_ms"] / 1e3, stretch["latency_max_us"] / 1e3
        if any(since < at <= until for since, until in spans):
            whole.append(took_ms)
            if took_ms > 5:
                # It ended within the stretch.
                took_ms = max(0.0, took_ms - seen.by_others_ms(at - took_ms / 1e3, at + length))
            found.append(took_ms)
    return max(found), max(whole), sum(one > 5 for one in found)


def explain(counted, journal, seen, above_ms=0.0):
    """When the slowest requests were, and what everybody did then, as lines of text: so that a
    stall of the machine can be told from one of ours."""
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
        lines.append(f"  who only sleeps woke {late:.1f} ms late")
        for since, until, what in journal:
            if since <= ended and until >= began:
                when = f"from {(since - began) * 1e3:+.1f} to {(until - began) * 1e3:+.1f} ms"
                lines.append(f"  meanwhile {what}, {when}")
        others = seen.by_others_ms(began, ended)
        if others > 0.5:
            lines.append(f"  others had the processors for {others:.1f} ms of it, which does not count")
        lines += [f"  {line}" for line in seen.told(began, ended)]
    return lines


def freeze(pid):
    """Stops a process where it is, every thread of it."""
    os.kill(pid, signal.SIGSTOP)
    for task in os.listdir(f"/proc/{pid}/task"):
        stat = pathlib.Path(f"/proc/{pid}/task/{task}/stat")
        while stat.read_text().rsplit(")", 1)[1].split()[0] not in "TtZX":
            time.sleep(0.001)


def held(pid, port):
    """The clients' ports of connections to `port` that a frozen process has taken out of the
    queue and said nothing on yet."""
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
