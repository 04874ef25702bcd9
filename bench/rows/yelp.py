"""Requests on kept connections while the configuration changes."""

from certificates import TlsSite
from changes import Changes
from programs import Beat, Load, Proxy, Settings, site
from table import failures
from watch import STEP_MS, awake, explain, longest, watching


def yelp(table, origins):
    """Yelp's benchmark: requests on kept connections, and a change every tenth of a second."""
    measure(table, "yelp", origins, Settings.scaled(1_000_000), Settings.scaled(1_500))


def yelp_tls(table, origins):
    """The same over TLS; the certificate is renewed, too."""
    measure(table, "yelp-tls", origins, Settings.scaled(300_000), Settings.scaled(450), TlsSite())


def measure(table, row, origins, requests, changes_min, tls=None):
    words = ["--no-retry", "--connections", 32, "--rate", 6_000, "--timeline", STEP_MS]
    words += tls.load if tls else []
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
    table.add(row, "requests", f"{counted['ok']:,}", f">= {requests:,}", counted["ok"] >= requests)
    holds = changes.made > changes_min
    table.add(row, "changes", f"{changes.made:,}", f"> {changes_min:,}", holds)
    table.add(row, "failed, sent again or not sent", failures(counted), "0", failures(counted) == 0)
    (slow, whole, _), (calm, *_) = longest(counted, seen), longest(quiet, seen_quiet)
    text = f"< {calm:.1f} + 20 ms"
    table.add(row, "longest request", f"{slow:.1f} ms", text, slow < calm + 20)
    if whole >= calm + 20:
        table.explain(explain(counted, changes.journal, seen, calm + 20))
    table.add(row, "machine: latest wake-up quiet, changing", awake(quiet, counted))
    for name in ("p50", "p99", "p999"):
        values = [one["latency_us"][name] / 1e3 for one in (quiet, counted)]
        table.add(row, f"{name} quiet, changing", "{:.2f}, {:.2f} ms".format(*values))
    table.add(row, "longest change", f"{changes.longest_ms:.1f} ms")
