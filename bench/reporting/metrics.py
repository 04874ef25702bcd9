"""The numbers that workloads give: what they are called, and in which order they are shown."""

import typing


class Metric(typing.NamedTuple):
    """A number of a turn."""

    # The head of a column.
    head: str
    # In words, with the unit.
    words: str
    digits: int = 2

    def text(self, value):
        return f"{value:,.{self.digits}f}"


METRICS = {
    "cpu_us": Metric("CPU us", "CPU time of a request, us"),
    "user_us": Metric("user", "of it in user mode, us"),
    "system_us": Metric("system", "of it in the kernel, us"),
    "calls": Metric("calls", "system calls of a request"),
    "switches": Metric("switches", "context switches of a request", 3),
    "rule_ns": Metric("ns/rule", "CPU time of one rule, ns", 1),
    "added_us": Metric("added us", "CPU time added to a request, us"),
    "random_us": Metric("random us", "CPU time of tracking a random key, us"),
    "hot_us": Metric("hot us", "CPU time of tracking a hot key, us"),
    "new_us": Metric("new us", "CPU time of tracking a new key in a full table, us"),
    "entry_bytes": Metric("entry B", "memory of an entry, bytes", 1),
    "bytes_each": Metric("bytes each", "memory of a client, bytes", 0),
    "kernel_bytes_each": Metric("kernel B", "memory of the kernel for a client's sockets, both ends, bytes", 0),
    "start_ms": Metric("start ms", "time to the first answer, ms", 1),
    "start_cpu_ms": Metric("CPU ms", "CPU time to the first answer, ms", 1),
    "attack_ms": Metric("CPU ms", "CPU time of 100,000 frames, ms", 1),
    "frames_each": Metric("frames", "frames on a connection before it is cut", 0),
    "connections": Metric("conns", "connections", 0),
    "cut": Metric("cut", "connections that were cut", 0),
    "grown_mb": Metric("MB more", "growth of the memory, MB", 1),
    "rate": Metric("a second", "requests a second", 0),
    "per_core": Metric("per core", "requests a second of one core's time", 0),
    "asked_rate": Metric("asked", "requests a second that were asked for", 0),
    "unsent": Metric("unsent", "requests that could not be sent in time", 0),
    "p50_us": Metric("p50 us", "median latency, us", 0),
    "p99_us": Metric("p99 us", "p99 of the latency, us", 0),
    "p999_us": Metric("p99.9 us", "p99.9 of the latency, us", 0),
    "p99_tenth_us": Metric("p99/0.1s", "p99 of the latency in the median tenth of a second, us", 0),
    "p999_tenth_us": Metric("p99.9/0.1s", "p99.9 of the latency in the median tenth of a second, us", 0),
    "p99_alone_us": Metric("alone us", "p99/0.1s without the others, us", 0),
    "p99_growth": Metric("growth", "p99/0.1s, of that without the others"),
    "renewal_wait_ms": Metric("renewal ms", "longest wait while a map is filled anew, ms", 1),
    "change_wait_ms": Metric("change ms", "longest wait while entries are changed, ms", 1),
    "list_wait_ms": Metric("list ms", "longest wait while a table is listed, ms", 1),
    "expiry_wait_ms": Metric("expiry ms", "longest wait while a table expires, ms", 1),
    "clear_wait_ms": Metric("clear ms", "longest wait while a table is cleared, ms", 1),
    "crowd_mb": Metric("crowd MB", "memory of the idle clients, MB", 1),
    "kernel_mb": Metric("kernel MB", "memory of the kernel for their sockets, both ends, MB", 1),
    "data_mb": Metric("data MB", "memory without pages of programs and libraries, MB", 1),
    "idle_mb": Metric("idle MB", "memory before the load, MB", 1),
    "peak_mb": Metric("peak MB", "most memory (VmHWM), MB", 1),
}


def shown(turns):
    """The names of the numbers that any of these turns has, in order."""
    had = {name for some in turns.values() for turn in some for name in turn}
    return [name for name in METRICS if name in had]
