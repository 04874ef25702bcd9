"""The death of a worker under a master."""

import os
import signal
import statistics
import time

from programs import Load, Proxy, Settings, site, tree
from table import classes
from watch import freeze, held


def crash_once(proxy):
    """Kills the worker. Returns the clients' ports of its exchanges, and how long it took until
    another worker answered."""
    before = proxy.process.pid if Settings.broken else tree(proxy.process.pid)[-1]
    if before == proxy.process.pid and not Settings.broken:
        raise RuntimeError("there is no worker beside the master")
    freeze(before)
    ports = held(before, proxy.port)
    began = time.monotonic()
    os.kill(before, signal.SIGKILL)
    if Settings.broken:
        proxy.process.wait()
        proxy.process = proxy.spawn()
    proxy.wait_for_answers(lambda pid: pid != before, "nobody followed the dead worker")
    return ports, time.monotonic() - began


def crash(table, origins):
    """A worker is killed: new connections wait and are served by the next one."""
    kills = 1 if Settings.short else 4
    words = () if Settings.broken else ("-W",)
    with Proxy(Settings.ballast, site(origins), *words) as proxy:
        # Slow responses, so that some exchanges are always running.
        path = ("--path", "/x?delay=50", "--connections", 1000)
        load = Load(
            "connect", "--rate", 500, "--duration", "10m", *path, f"127.0.0.1:{proxy.port}"
        )
        ports, gaps, losses = set(), [], []
        for _ in range(kills):
            time.sleep(1)
            known = proxy.requests_counted()
            time.sleep(1.5)  # the counters have been passed to the master since then
            more, gap = crash_once(proxy)
            ports |= more
            gaps.append(gap * 1e3)
            losses.append(known - proxy.requests_counted())
        time.sleep(1)
        counted = load.stop()
    broken = {one["port"] for one in counted["first_failures"]}
    others = counted["failed"] - sum(one["port"] in ports for one in counted["first_failures"])
    others += counted["retried"]
    table.add("crash", f"kill -9 of the worker, {kills} times: answered", f"{counted['ok']:,}")
    said = f"new connections that failed ({classes(counted) or 'none broke'})"
    table.add("crash", said, others, "0", others == 0)
    exact = broken == ports and bool(ports)
    text = f"{len(broken)} of {len(ports)}"
    table.add("crash", "broken of those that the dead ones held", text, "those, no others", exact)
    lost = max(losses)
    table.add("crash", "requests counted before and not after", max(lost, 0), "0", lost <= 0)
    text = f"{statistics.median(gaps):.0f}, {max(gaps):.0f} ms"
    table.add("crash", "until the next answers: median, longest", text)
    table.add("crash", "longest request", f"{counted['latency_us']['max'] / 1e3:.0f} ms")
