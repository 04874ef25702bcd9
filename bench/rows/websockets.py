"""Connections that stay while the configuration changes."""

import time

from changes import Changes
from programs import Beat, Load, Proxy, Settings, resident_bytes, site, tree


def websockets(table, origins):
    """Long connections stay in the same process, whatever is changed."""
    sockets, count = Settings.scaled(1_000, 100), Settings.scaled(200, 20)
    with Proxy(Settings.ballast, site(origins)) as proxy:
        words = ["websockets", "--connections", sockets, "--every-ms", 1000, "--duration", "10m"]
        load = Load(
            *words,
            f"127.0.0.1:{proxy.port}",
            wait_for="all connections are open or have failed",
        )
        first = proxy.process.pid
        changes, beat = Changes(proxy, origins), Beat(0.05)
        for _ in range(16):  # warm-up: each kind of change twice
            changes.one()
        time.sleep(1.5)  # every socket has sent a message
        before = resident_bytes(proxy.process.pid)
        while changes.made < 16 + count:
            changes.one()
            beat.wait()
        time.sleep(1.5)
        after = resident_bytes(proxy.process.pid)
        pids = tree(proxy.process.pid)
        counted = load.stop()["websockets"]
    table.add("websockets", "changes", count)
    single = pids == [first]
    table.add("websockets", "processes", len(pids) if single else "others", "1, the first", single)
    alive = counted["alive"]
    table.add("websockets", "sockets alive", f"{alive:,}", f"{sockets:,}", alive == sockets)
    table.add("websockets", "messages echoed", f"{counted['echoed']:,}")
    grown = after / before - 1
    text = f"{before >> 10:,} KiB, {grown:+.1%}"
    table.add("websockets", "memory", text, "< +5 %", grown < 0.05)
