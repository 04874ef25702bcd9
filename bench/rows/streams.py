"""Streams of HTTP/2 while the configuration changes, and while programs take over from each other."""

import contextlib
import subprocess

from certificates import TlsSite
from changes import Changes
from programs import Beat, Load, Proxy, Settings, site
from table import classes, failures
from watch import STEP_MS, awake, explain, longest, watching

WORDS = ["--h2", "--no-retry", "--connections", 8, "--streams", 32]
HANDOVERS = 5


def streams(table, origins):
    """HTTP/2: 8 connections of 32 streams, a change every tenth of a second; then handovers."""
    changing(table, "h2", origins, Settings.scaled(1_000_000), Settings.scaled(1_500))
    handovers(table, "h2", origins)


def streams_tls(table, origins):
    """The same over TLS, chosen by ALPN; the certificate is renewed, too."""
    tls = TlsSite(alpn="h2")
    changing(table, "h2-tls", origins, Settings.scaled(300_000), Settings.scaled(450), tls)
    handovers(table, "h2-tls", origins, tls)


def told(counted):
    """How many requests GOAWAY and REFUSED_STREAM told to send again, which is no failure."""
    return counted["h2"]["told_to_retry"]["goaway"] + counted["h2"]["told_to_retry"]["refused"]


def show(table, row, what, counted):
    failed = failures(counted)
    table.add(row, f"{what}: failed, sent again or not sent", failed, "0", failed == 0)
    if failed:
        table.add(row, "of them", classes(counted))
    table.add(row, f"{what}: told to send again", told(counted))


def changing(table, row, origins, requests, changes_min, tls=None):
    words = [*WORDS, "--rate", 6_000, "--timeline", STEP_MS, *(tls.load if tls else [])]
    with Proxy(Settings.ballast, site(origins, bind=tls.bind if tls else "")) as proxy:
        target = f"127.0.0.1:{proxy.port}"
        load = Load(*words, "--requests", Settings.scaled(200_000), target)
        with watching(proxy, load) as seen_quiet:
            quiet = load.finish()
        load = Load(*words, "--requests", requests, target)
        changes, beat = Changes(proxy, origins, tls=tls), Beat(0.1)
        with watching(proxy, load) as seen:
            while load.runs():
                changes.one()
                beat.wait()
        counted = load.finish()
    table.add(row, "streams", f"{counted['ok']:,}", f">= {requests:,}", counted["ok"] >= requests)
    table.add(row, "changes", f"{changes.made:,}", f"> {changes_min:,}", changes.made > changes_min)
    show(table, row, "changes", counted)
    (slow, whole, _), (calm, *_) = longest(counted, seen), longest(quiet, seen_quiet)
    table.add(row, "longest stream", f"{slow:.1f} ms", f"< {calm:.1f} + 20 ms", slow < calm + 20)
    if whole >= calm + 20:
        table.explain(explain(counted, changes.journal, seen, calm + 20))
    table.add(row, "machine: latest wake-up quiet, changing", awake(quiet, counted))


def handovers(table, row, origins, tls=None):
    """A process takes the sockets of the one before; its clients are told by GOAWAY to leave."""
    words = [*WORDS, "--rate", 2_000, *(tls.load if tls else [])]
    count = Settings.scaled(HANDOVERS, 2)
    with Proxy(Settings.ballast, site(origins, bind=tls.bind if tls else "")) as proxy:
        load = Load(*words, "--duration", f"{2 * count + 2}s", f"127.0.0.1:{proxy.port}")
        beat, old = Beat(2), []
        beat.wait()
        for _ in range(count):
            if Settings.broken:
                proxy.restart()
            else:
                old.append(proxy.hand_over("-x", proxy.socket))
            beat.wait()
        counted = load.finish()
        stayed = 0
        for process in old:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            stayed += process.poll() is None
            process.kill()
            process.wait()
    show(table, row, f"{count} handovers", counted)
    opened = counted["connections_opened"]
    table.add(row, "connections opened", opened, f">= {8 * (count + 1)}", opened >= 8 * (count + 1))
    table.add(row, "former processes that stayed", stayed, "0", stayed == 0)
