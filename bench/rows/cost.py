"""What a change costs: HAProxy's reload beside `apply`."""

import contextlib
import signal
import threading
import time

from programs import Beat, Load, Proxy, Settings, processor_seconds, resident_bytes, site, tree


def sample_memory(proxy, seen, stop):
    """Samples how much memory the processes have together."""
    while not stop.is_set():
        total = 0
        for one in tree(proxy.process.pid):
            with contextlib.suppress(OSError, TypeError):
                total += resident_bytes(one)
        seen.append(total)
        stop.wait(0.05)


def cost_turn(name, origins):
    """The same changes by reloads of a master, or by `apply`."""
    count = Settings.scaled(100)
    ours = name == "ballast"
    words = () if ours else ("-W",)
    with Proxy(getattr(Settings, name), site(origins), *words) as proxy:
        target, load_words = f"127.0.0.1:{proxy.port}", ["--connections", 16, "--rate", 2000]
        began, before = time.monotonic(), processor_seconds(tree(proxy.process.pid))
        quiet = Load(*load_words, "--duration", "5s", target).finish()
        a_second = (processor_seconds(tree(proxy.process.pid)) - before) / (time.monotonic() - began)
        seen, stop = [], threading.Event()
        threading.Thread(target=sample_memory, args=(proxy, seen, stop), daemon=True).start()
        load = Load(*load_words, "--duration", "10m", target)
        began, before = time.monotonic(), processor_seconds(tree(proxy.process.pid))
        beat = Beat(0.3)
        for n in range(count):
            text = site(origins, f" http-request set-header X-Turn {n}")
            if ours and Settings.broken:
                proxy.restart(text)
            elif ours:
                proxy.apply(text)
            else:
                reload_haproxy(proxy, text)
            beat.wait()
        spent = processor_seconds(tree(proxy.process.pid)) + proxy.ended_seconds - before
        extra = spent - a_second * (time.monotonic() - began)
        counted = load.stop()
        stop.set()
        known = proxy.requests_counted()
    sent = quiet["ok"] + counted["ok"] + counted["failed"]
    return {
        "changes": count,
        "extra": extra,
        "peak": max(seen),
        "start": seen[0],
        "p99": counted["latency_us"]["p99"],
        "p99 quiet": quiet["latency_us"]["p99"],
        "failed": counted["failed"],
        "retried": counted["retried"],
        "kept": known / sent,
    }


def reload_haproxy(proxy, text):
    """Signals the master; returns when a new worker answers."""
    before = proxy.answering()
    proxy.write(text)
    proxy.process.send_signal(signal.SIGUSR2)
    proxy.wait_for_answers(lambda pid: pid != before, "haproxy does not reload")


def cost(table, origins):
    """The same hundred changes, by reloads and by `apply`."""
    results = {name: cost_turn(name, origins) for name in ("haproxy", "ballast")}
    their, our = results["haproxy"], results["ballast"]
    each = [one["extra"] / one["changes"] * 1e3 for one in (their, our)]
    text = "{:.1f}, {:.1f} ms".format(*each)
    table.add("cost", "CPU of a change: haproxy, ballast", text, "ours less", each[1] < each[0])
    text = "{:,}, {:,} KiB".format(their["peak"] >> 10, our["peak"] >> 10)
    table.add("cost", "peak memory of all processes", text)
    text = "{:+.0%}, {:+.0%}".format(*(one["peak"] / one["start"] - 1 for one in (their, our)))
    table.add("cost", "peak above the beginning", text, "ours less", our["peak"] / our["start"] < their["peak"] / their["start"])
    text = "{:.0f}, {:.0f} us".format(their["p99"], our["p99"])
    table.add("cost", "p99 while changing", text)
    text = "{:.0f}, {:.0f} us".format(their["p99 quiet"], our["p99 quiet"])
    table.add("cost", "p99 quiet", text)
    text = "{}+{}, {}+{}".format(their["failed"], their["retried"], our["failed"], our["retried"])
    table.add("cost", "failed + sent again", text, "ours 0", our["failed"] + our["retried"] == 0)
    text = "{:.0%}, {:.0%}".format(their["kept"], our["kept"])
    table.add("cost", "requests still counted at the end", text, "ours all", abs(our["kept"] - 1) < 0.001)
