"""Changes among a hundred thousand servers."""

import statistics
import time

from programs import Load, Proxy, Settings, free_port, many, site
from table import classes
from watch import STEP_MS, Windows, awake, explain, watching


def large(table, origins):
    """A change of one of a thousand backends with a hundred servers each costs only what it changes."""
    backends = Settings.scaled(1_000)
    text = site(origins, extra=many(backends, 100, origins[0]))
    table.add("large", "servers", f"{backends * 100:,}")
    with Proxy(Settings.ballast, text) as proxy:
        words = ["--no-retry", "--connections", 16, "--rate", 1000, "--duration", "10m"]
        words += ["--timeline", STEP_MS, f"127.0.0.1:{proxy.port}"]

        def few(windows, n):
            """Five changes, each of one object."""
            at, port = f"b{n * 7 % backends}/d{n}", free_port()
            lines = f" bind 127.0.0.1:{port}\n default_backend app\n"
            for name, said in (
                ("set weight", f"set server b{n}/s{n} weight {n + 2}"),
                ("add server", f"add server {at} 127.0.0.1:{origins[0]}"),
                ("del server", f"del server {at}"),
                ("add frontend", f"add frontend f{n} from web <<\n{lines}"),
                ("del frontend", f"del frontend f{n}"),
            ):
                windows.timed(name, lambda: proxy.restart() if Settings.broken else proxy.ask(said))
                time.sleep(0.05)

        def whole(windows, n):
            """The whole file is read again; one of its backends has changed."""
            other = text.replace(f"backend b{n}\n balance roundrobin", f"backend b{n}\n balance first")
            windows.timed("whole file", lambda: proxy.apply(other))

        kinds = [("a change", few, 20), ("the whole file", whole, 8)]
        for what, work, turns in kinds[:1] if Settings.broken else kinds:
            for last in [True] if Settings.broken else [False, True]:
                load = Load(*words)
                with watching(proxy, load) as seen:
                    windows = Windows(seen)
                    time.sleep(0.5)
                    for n in range(2 if Settings.broken else turns):
                        windows.turn(lambda: work(windows, n))
                if judge_large(table, what, windows, load.stop(), last):
                    break


def judge_large(table, what, windows, counted, last):
    """The worst request is a single one, and a busy machine causes such requests by itself: a row
    that misses is measured again, and both are shown. True when that is not needed."""
    for name in dict.fromkeys(name for _, _, name in windows.journal):
        times = windows.took(name)
        middle, most = statistics.median(times), max(times)
        text = f"{middle:.1f}, {most:.1f} ms"
        target = ("", None) if name == "whole file" else ("< 50 ms", most < 50)
        table.add("large", f"{name}: median, longest", text, *target)
    # The load is ended by a signal: a request that is due at that moment is never started. It is
    # shown, but it is not a failure of the proxy.
    wrong = counted["failed"] + counted["retried"]
    said = f"{what}: failed of {counted['ok']:,} ({classes(counted) or 'none'})"
    table.add("large", said, wrong, "0", wrong == 0)
    (calm, _, calm_intervals), (slow, whole, intervals) = (
        windows.slowest(counted, kind) for kind in ("quiet", "changing")
    )
    holds = slow < calm + 5
    text = f"< {calm:.1f} + 5 ms" + ("" if holds or last else ", again:")
    table.add("large", f"{what}: longest request", f"{slow:.1f} ms", text, holds if holds or last else None)
    if whole >= calm + 5:
        table.explain(explain(counted, windows.journal, windows.seen, calm + 5))
    text = f"{calm_intervals}, {intervals}"
    table.add("large", f"{what}: 10 ms with one > 5 ms, quiet, changing", text)
    table.add("large", f"{what}: latest wake-up of the machine", awake(counted))
    return holds
