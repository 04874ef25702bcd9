"""Sockets that go from program to program."""

import contextlib
import subprocess
import time

from programs import Load, Proxy, Settings, site
from table import classes, failures


def handover(table, origins):
    """HAProxy passes its sockets to Ballast, Ballast to another Ballast, and that back to HAProxy."""
    with Proxy(Settings.haproxy, site(origins)) as proxy:
        load = Load(
            "connect", "--rate", 2000, "--duration", "12s", f"127.0.0.1:{proxy.port}"
        )
        old = []
        try:
            for program in (Settings.ballast, Settings.ballast, Settings.haproxy):
                time.sleep(2)
                proxy.program = program
                if Settings.broken:
                    proxy.restart()
                else:
                    old.append(proxy.hand_over("-x", proxy.socket))
        except (RuntimeError, OSError) as fault:
            load.stop()
            why = str(fault).strip().splitlines()[-1]
            return table.missing("handover", "haproxy, ballast, ballast, haproxy", f"missing: {why}")
        finally:
            for process in old[:-1]:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(5)
                process.kill()
        counted = load.finish()
        old and old[-1].kill()
    what = f"haproxy, ballast, ballast, haproxy: of {counted['ok'] + counted['failed']:,}"
    table.add("handover", what, f"{failures(counted)} failed", "0", failures(counted) == 0)
    if counted["failed"]:
        table.add("handover", "of them", classes(counted))
    return None
