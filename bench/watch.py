"""What was seen of processes from outside: who ran, who waited, who held what, and when."""

import bisect
import contextlib
import datetime
import os
import pathlib
import re
import signal
import subprocess
import threading
import time

EXPLAINED_COUNT_MAX = 3


class Watch:
    """What every thread of some processes does: how long it ran, and how long it waited for a
    processor. In the rest of the time it slept."""

    PERIOD = 0.02

    def __init__(self, **processes):
        self.processes = processes
        self.files, self.samples = {}, []
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
        for name, pid in self.processes.items():
            with contextlib.suppress(OSError):
                for task in os.listdir(f"/proc/{pid}/task"):
                    if (name, task) not in self.files:
                        path = f"/proc/{pid}/task/{task}/schedstat"
                        self.files[name, task] = os.open(path, os.O_RDONLY)

    def look(self):
        turn = 0
        while not self.stop.is_set():
            if turn % 50 == 0:
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
        """The samples before and after; none when there are none."""
        if not self.samples:
            return (began, {}, 0.0), (ended, {}, 0.0)
        before = bisect.bisect_right(self.samples, began, key=lambda one: one[0]) - 1
        after = bisect.bisect_left(self.samples, ended, key=lambda one: one[0])
        return self.samples[max(before, 0)], self.samples[min(after, len(self.samples) - 1)]

    def is_held_back(self, began, ended):
        """Whether the machine's own host gave its processors to others then, for half of the time
        or more: what took long, took long for that."""
        before, after = self.around(began, ended)
        return after[2] - before[2] >= (ended - began) * 1e3 / 2

    def told(self, began, ended):
        """In words, what all did around that time: one line for each process."""
        (since, was, stolen), (until, now, stolen_then) = self.around(began, ended)
        lines = [f"{(until - since) * 1e3:.0f} ms around it, of each thread ran+waited for a processor:"]
        for name in self.processes:
            deeds = sorted(
                (tuple((n - w) / 1e6 for n, w in zip(now[key], was[key])))
                for key in now.keys() & was.keys()
                if key[0] == name
            )
            shown = [f"{ran:.1f}+{waited:.1f}" for ran, waited in reversed(deeds) if ran + waited > 0.05]
            lines.append(f"  {name}: {', '.join(shown) or 'all slept'}")
        if stolen_then > stolen:
            lines.append(f"  not given to this machine by its host: {stolen_then - stolen:.0f} ms")
        return lines


class Windows:
    """Quiet times and times with changes, one after the other and equally long in all, under one
    load: the worst request of the ones is compared with the worst of the others. Whatever else
    the machine does, it does to both."""

    SETTLED = 0.05
    STEP_MS = 10

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
        """How long each such change took, in milliseconds, those left out that the host held up."""
        return [
            (until - since) * 1e3
            for since, until, what in self.journal
            if what == name and not self.seen.is_held_back(since, until)
        ]

    def slowest(self, counted, kind):
        """The longest request that ended in such times, in milliseconds; of the stretches of 10 ms,
        how many had one of more than five; and how many were the host's, and are left out."""
        spans, start, found, left_out = self.spans[kind], counted["began_unix_s"], [], 0
        for stretch in counted["timeline"]:
            at, took = start + stretch["at_ms"] / 1e3, stretch["latency_max_us"] / 1e6
            if not any(since < at <= until for since, until in spans):
                continue
            if took > 0.005 and self.seen.is_held_back(at - took, at + self.STEP_MS / 1e3):
                left_out += 1
            else:
                found.append(took * 1e3)
        return max(found, default=0.0), sum(one > 5 for one in found), left_out


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


def longest(counted, seen):
    """The longest request in milliseconds, and how many longer ones were the host's. Of twenty
    such, the last counts all the same."""
    start, left_out = counted["began_unix_s"], 0
    for slow in counted["slowest"][:-1]:
        ended = start + slow["at_ms"] / 1e3
        if not seen.is_held_back(ended - slow["latency_us"] / 1e6, ended):
            return slow["latency_us"] / 1e3, left_out
        left_out += 1
    return counted["slowest"][-1]["latency_us"] / 1e3, left_out


def explain(counted, journal, seen, above_ms=0.0):
    """When the slowest requests were, and what everybody did then, as lines of text: so that a
    stall of the machine can be told from one of ours."""
    start, lines, told = counted["began_unix_s"], [], []
    for slow in counted["slowest"]:
        ended = start + slow["at_ms"] / 1e3
        began = ended - slow["latency_us"] / 1e6
        of_another = all(abs(ended - other) > 0.1 for other in told)
        if slow["latency_us"] / 1e3 < above_ms or not of_another or len(told) >= EXPLAINED_COUNT_MAX:
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
        blames = late > slow["latency_us"] / 2e3
        whose = "the machine stood still or was full" if blames else "the machine was not in the way"
        lines.append(f"  who only sleeps woke {late:.1f} ms late: {whose}")
        for since, until, what in journal:
            if since <= ended and until >= began:
                when = f"from {(since - began) * 1e3:+.1f} to {(until - began) * 1e3:+.1f} ms"
                lines.append(f"  meanwhile {what}, {when}")
        if seen.is_held_back(began, ended):
            lines.append("  the host of this machine held it back: it does not count")
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
