"""New connections while the program is reloaded, in every way there is."""

import contextlib
import statistics
import subprocess

from certificates import TlsSite
from programs import Beat, Load, Proxy, Settings, site
from table import failures


def restart(proxy, _n, _words):
    proxy.restart()


def legacy_reload(proxy, _n, _words):
    return proxy.hand_over()


def socket_reload(proxy, _n, _words):
    return proxy.hand_over("-x", proxy.socket)


def apply(proxy, n, words):
    if Settings.broken:
        return proxy.restart()
    front = f" http-request set-header X-Turn {n}\n timeout client {60 + n % 9}s"
    return proxy.apply(site(front=front, **words))


# name, program, action, period in seconds
WAYS = [
    ("restart", "ballast", restart, 1.0),
    ("haproxy, quiet", "haproxy", None, 1.0),
    ("haproxy, legacy reload", "haproxy", legacy_reload, 1.0),
    ("haproxy, socket reload", "haproxy", socket_reload, 1.0),
    ("handover", "ballast", socket_reload, 2.0),
    # One after the other and more often: their times are compared.
    ("quiet", "ballast", None, 1.0),
    ("apply", "ballast", apply, 0.2),
]


def one_turn(program, action, period, origins, tls):
    seconds = 3 if Settings.short else 6
    words = {"origins": origins, "bind": tls.bind if tls else ""}
    with Proxy(getattr(Settings, program), site(**words)) as proxy:
        old = []
        load_words = [*tls.load, "--resume", "tickets"] if tls else []
        load = Load(
            "connect", "--rate", 1000, "--duration", f"{seconds}s", *load_words, f"127.0.0.1:{proxy.port}"
        )
        beat, n = Beat(period), 0
        beat.wait()
        while load.runs():
            if action:
                n += 1
                before = action(proxy, n, words)
                old += [before] if before else []
            beat.wait()
        counted = load.finish()
        for process in old:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            process.kill()
            process.wait()
    counted["actions"] = n
    return counted


def lee(table, origins):
    """Fabian Lee's table: a new connection for each request, while the program is reloaded."""
    measure(table, "lee", origins)


def lee_tls(table, origins):
    """The same over TLS, with clients that resume their sessions."""
    measure(table, "lee-tls", origins, TlsSite())


def measure(table, row, origins, tls=None):
    turns = {name: [] for name, *_ in WAYS}
    faults = {}
    rounds = 1 if Settings.short else 2
    for turn in range(rounds * 3):
        for name, *way in WAYS if turn < rounds else WAYS[-2:]:
            try:
                turns[name].append(one_turn(*way, origins, tls))
            except (RuntimeError, OSError) as fault:
                faults[name] = str(fault).strip().splitlines()[-1]
    for name, *_ in WAYS:
        if name in faults:
            table.missing(row, name, f"missing: {faults[name]}")
        else:
            show(table, row, name, turns[name])
    if "apply" not in faults and "quiet" not in faults:
        ratios = [
            apply["latency_us"]["p95"] / quiet["latency_us"]["p95"]
            for apply, quiet in zip(turns["apply"], turns["quiet"])
        ]
        ratio = statistics.median(ratios)
        table.add(row, "p95 of apply, of quiet", f"{ratio:.3f}", "<= 1.05", ratio <= 1.05)


def show(table, row, name, turns):
    """What one way of reloading cost."""
    ours = name in ("apply", "handover", "quiet")
    failed = sum(map(failures, turns))
    what = f"{name}: failed of {sum(turn['ok'] + turn['failed'] for turn in turns):,}"
    if actions := sum(turn["actions"] for turn in turns):
        what += f", {actions} times"
    table.add(row, what, failed, "0" if ours else "", failed == 0 if ours else None)
    p95 = statistics.median(turn["latency_us"]["p95"] for turn in turns)
    table.add(row, f"{name}: p95", f"{p95:.0f} us")
    if "tls" in turns[0]:
        offered, resumed = (sum(turn["tls"][key] for turn in turns) for key in ("offered", "resumed"))
        refused = offered - resumed
        what = f"{name}: sessions not resumed, of {offered:,}"
        table.add(row, what, refused, "0" if ours else "", refused == 0 if ours else None)
