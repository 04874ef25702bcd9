"""What the kernel accounts to a process: processor time, context switches, memory; and the machine."""

import contextlib
import itertools
import os
import pathlib
import platform
import random
import re
import socket

TICK_US = 1e6 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


# Below the ports that the kernel gives to outgoing connections, of which a load opens thousands.
PORTS = range(10_000, 32_000)
NEXT_PORTS = itertools.islice(itertools.cycle(PORTS), random.randrange(len(PORTS)), None)


def free_port():
    """A TCP port that nobody uses, and that was not given before."""
    for port in NEXT_PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def tree(pid):
    """The process and its descendants: nginx serves in a child process."""
    found = [pid]
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += tree(int(child))
    return found


def usage(pid):
    """What the process and its descendants have used so far: microseconds of processor time in all,
    in user mode and in the kernel, and context switches.

    The whole counts nanoseconds (schedstat); user and system are sampled in ticks, so they only
    split the whole.
    """
    nanoseconds = user = system = switches = 0
    for process in tree(pid):
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{process}/task").iterdir():
                nanoseconds += int((task / "schedstat").read_text().split()[0])
                fields = (task / "stat").read_text().rsplit(")", 1)[1].split()
                user, system = user + int(fields[11]), system + int(fields[12])
                lines = (task / "status").read_text()
                switches += sum(int(one) for one in re.findall(r"_ctxt_switches:\s+(\d+)", lines))
    whole = nanoseconds / 1e3 if nanoseconds else (user + system) * TICK_US
    return {"cpu_us": whole, "user_us": user * TICK_US, "system_us": system * TICK_US, "switches": switches}


def used_during(pid, work):
    """What the process used while `work` ran, and what `work` gave."""
    before = usage(pid)
    given = work()
    after = usage(pid)
    used = {name: after[name] - before[name] for name in after}
    ticks = used["user_us"] + used["system_us"]
    # Too short for a tick: all of it counts as the kernel's.
    used["user_us"] = used["cpu_us"] * used["user_us"] / ticks if ticks else 0.0
    used["system_us"] = used["cpu_us"] - used["user_us"]
    return used, given


def resident_bytes(pid):
    """The memory of one process; shared pages count proportionally."""
    return proportional(pid)["Pss"]


def proportional(pid):
    """Parts of the memory of a process, in bytes, where shared pages count proportionally."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {name: int(kilobytes) * 1024 for name, kilobytes in re.findall(r"^(Pss\w*):\s+(\d+)", text, re.M)}


def memory_bytes(pid):
    """The memory of the process and its descendants; shared pages count proportionally."""
    return sum(resident_bytes(process) for process in tree(pid))


def data_bytes(pid):
    """The same without the pages of files (programs, libraries), whose share depends on who else has
    them in use: what growth is told by."""
    parts = [proportional(process) for process in tree(pid)]
    return sum(part.get("Pss_Anon", part["Pss"]) + part.get("Pss_Shmem", 0) for part in parts)


def peak_bytes(pid):
    """The most memory that the process and its descendants had (VmHWM); shared pages count fully."""
    found = 0
    for process in tree(pid):
        text = pathlib.Path(f"/proc/{process}/status").read_text()
        found += int(re.search(r"^VmHWM:\s+(\d+)", text, re.M)[1]) * 1024
    return found


def socket_bytes():
    """What the kernel holds for all TCP sockets of this machine, on either side of a connection."""
    text = pathlib.Path("/proc/net/sockstat").read_text()
    return int(re.search(r"^TCP:.* mem (\d+)", text, re.M)[1]) * PAGE_BYTES


def machine():
    """What the figures depend on."""
    said = pathlib.Path("/proc/cpuinfo").read_text()
    cpu = re.search(r"model name\s*: (.*)", said)
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "processors": os.cpu_count(),
        "memory_gb": round(int(memory[1]) / (1 << 20), 1),
        "kernel": platform.release(),
        "virtual": " hypervisor" in said,
        "load": os.getloadavg(),
    }
