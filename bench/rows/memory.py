"""What thousands of changes leave behind."""

import re
import subprocess
import time

from changes import Changes
from programs import (
    READY_SECONDS_MAX,
    Load,
    Proxy,
    Settings,
    descriptors,
    free_port,
    many,
    resident_bytes,
    site,
)


def idle_footprint(proxy):
    """Waits, with the load stopped, until no connection is left, neither of a client nor idle to
    a server. Returns the memory and the number of descriptors of the process."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    same, before = 0, None
    while same < 10:
        if time.monotonic() > deadline:
            raise RuntimeError("connections do not end")
        time.sleep(0.05)
        said = subprocess.run(
            ["ss", "-tnpOH", "state", "connected"], check=True, stdout=subprocess.PIPE, text=True
        ).stdout
        open_still = len(re.findall(rf"\bpid={proxy.process.pid},", said))
        now = descriptors(proxy.process.pid)
        same = same + 1 if now == before and not open_still else 0
        before = now
    return resident_bytes(proxy.process.pid), before


def memory(table, origins):
    """Ten thousand changes of a site of a thousand servers: memory and descriptors stay the same."""
    total = Settings.scaled(10_000)
    extra = many(100, 10, origins[0])
    # Idle connections to servers end soon after the load.
    back = " default-server pool-purge-delay 200ms"
    # The allocator's caches grow to their limit of 224 KiB per thread in any case; they are turned
    # off here, so that only the program's own memory is measured.
    alone = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    with Proxy(Settings.ballast, site(origins, back=back, extra=extra), also=alone) as proxy:
        changes = Changes(proxy, origins, extra, back)
        broken, Settings.broken = Settings.broken, False
        runs, after = [], []
        # Under load both times, so that the growth under load is not counted as the changes'.
        for until in (104, total):
            load = Load(
                "--rate", 2000, "--connections", 64, "--duration", "10m", f"127.0.0.1:{proxy.port}"
            )
            time.sleep(1)
            while changes.made < until:
                if broken and changes.made % 16 == 0:
                    # In every file from now on: what only a command adds would be dropped.
                    lines = f" bind 127.0.0.1:{free_port()}\n default_backend app\n"
                    changes.always["extra"] += f"\nfrontend leak{changes.made}\n{lines}"
                changes.one()
            runs.append(load.stop())
            after.append(idle_footprint(proxy))
        Settings.broken = broken
    (bytes_first, open_first), (bytes_last, open_last) = after
    table.add("memory", "changes", f"{changes.made:,}")
    failed, ok = (sum(run[name] for run in runs) for name in ("failed", "ok"))
    table.add("memory", f"failed of {ok:,}", failed, "0", failed == 0)
    ratio = bytes_last / bytes_first
    text = f"{bytes_first >> 10:,} KiB, {ratio:.3f}"
    table.add("memory", "after all / after 104", text, "<= 1.02", ratio <= 1.02)
    leaked = open_last - open_first
    table.add("memory", f"descriptors leaked, of {open_first}", leaked, "0", leaked == 0)
