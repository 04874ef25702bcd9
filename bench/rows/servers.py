"""Servers that come and go by the hundred."""

import time

from programs import Load, Proxy, Settings, site


def servers(table, origins):
    """From no server to 600 and down to 115, under load; then a thousand added in a second."""
    rate, most, left = 20_000, Settings.scaled(600), Settings.scaled(115)
    front = " use_backend grown if { nbsrv(grown) gt 0 }"
    text = site(origins, front, extra="backend grown\n balance roundrobin")
    with Proxy(Settings.ballast, text) as proxy:
        load = Load("--no-retry", "--rate", rate, "--connections", 64, "--duration", "10m",
                    f"127.0.0.1:{proxy.port}")
        began = time.monotonic()
        time.sleep(1)
        for n in range(most):
            at = f"grown/g{n}"
            said = proxy.ask(f"add server {at} 127.0.0.1:{origins[n % 2]}; enable server {at}")
            if "registered" not in said:
                raise RuntimeError(said)
            if Settings.broken and n == most // 2:
                proxy.restart()
                break
        grown = proxy.requests_counted()
        for n in range(0 if Settings.broken else most - left):
            at = f"grown/g{n}"
            said = proxy.ask(f"disable server {at}; wait 5s srv-removable {at}; del server {at}")
            if "deleted" not in said:
                raise RuntimeError(said)
        seconds = time.monotonic() - began
        counted = load.stop()
        rows = proxy.ask("show stat").count("\ngrown,g")
    answered = counted["ok"] / seconds
    wrong = counted["failed"] + counted["retried"]
    table.add("servers", f"0, {most}, {left}: servers at the end", rows, str(left), rows == left)
    table.add("servers", f"failed of {counted['ok']:,}", wrong, "0", wrong == 0)
    table.add("servers", "requests/s", f"{answered:,.0f}", f"{rate:,} offered", answered >= rate * 0.95)
    table.add("servers", "longest request", f"{counted['latency_us']['max'] / 1e3:.1f} ms")
    with Proxy(Settings.ballast, text) as proxy:
        total = 1_000
        lines = [f"add server grown/g{n} 127.0.0.1:{origins[0]}" for n in range(total)]
        began = time.monotonic()
        registered = proxy.ask("\n".join(lines)).count("registered")
        took = time.monotonic() - began
    added = registered / took
    table.add("servers", "servers added a second", f"{added:,.0f}", ">= 1,000", added >= 1_000)
