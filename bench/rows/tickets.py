"""The keys of session tickets change while clients resume."""

import base64
import os
import pathlib
import tempfile

from certificates import TlsSite
from programs import Beat, Load, Proxy, Settings, site
from table import failures

KEY_BYTES = 48


def key():
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def tickets(table, origins):
    """A new ticket key every second, of three in the file, while sessions are resumed."""
    tls = TlsSite()
    file = pathlib.Path(tempfile.mkdtemp(dir=Settings.directory), "ticket-keys")
    file.write_text("\n".join(key() for _ in range(3)) + "\n")
    seconds = 5 if Settings.short else 20
    # Tickets are fetched anew with each connection: none is older than the next but one key.
    words = ["handshakes", "--resume", "tickets", "--rate", 1000, "--connections", 32, *tls.load]
    rotated = 0
    with Proxy(Settings.ballast, site(origins, bind=f"{tls.bind} tls-ticket-keys {file}")) as proxy:
        load = Load(*words, "--duration", f"{seconds}s", f"127.0.0.1:{proxy.port}")
        beat = Beat(1)
        beat.wait()
        while load.runs():
            # Three at once leave no key that could open a ticket.
            for _ in range(3 if Settings.broken else 1):
                said = proxy.ask(f"set ssl tls-key {file} {key()}")
                if "updated" not in said:
                    raise RuntimeError(said[:400])
            rotated += 1
            beat.wait()
        counted = load.finish()
    seen = counted["tls"]
    refused = seen["offered"] - seen["resumed"]
    table.add("tickets", "keys rotated", rotated)
    table.add("tickets", f"full instead of resumed, of {seen['offered']:,}", refused, "0", refused == 0)
    table.add("tickets", "full: no session to offer", seen["full"] - refused)
    table.add("tickets", "failed or not sent", failures(counted), "0", failures(counted) == 0)
    p99 = counted["latency_us"]["p99"] / 1e3
    table.add("tickets", "p99 of handshakes", f"{p99:.2f} ms")
