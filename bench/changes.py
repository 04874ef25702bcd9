"""Changes of a site, of every kind in turn."""

import time

from certificates import renew
from programs import Settings, free_port, site


class Changes:
    """Makes changes of every kind in turn; `extra` and `back` are part of every file. A site over
    TLS has one kind more."""

    def __init__(self, proxy, origins, extra="", back="", tls=None):
        self.proxy, self.origins, self.tls = proxy, origins, tls
        self.always = {"extra": extra, "back": back, "bind": tls.bind if tls else ""}
        self.kinds = self.KINDS + (("renewal of a certificate", Changes.renew),) * bool(tls)
        self.made, self.longest_ms = 0, 0.0
        # The time and the kind of each change.
        self.journal = []

    def one(self):
        n = self.made
        name, change = self.kinds[n % len(self.kinds)]
        began = time.time()
        if Settings.broken:
            self.proxy.restart()
        else:
            said = change(self, n, n // len(self.kinds)) or ""
            words = ("ALERT", "No such", "Failed", "Unknown", "Require", "cannot", "Invalid")
            if any(word in said for word in words):
                raise RuntimeError(f"change {n}: {said[:400]}")
        ended = time.time()
        self.journal.append((began, ended, f"change {n}, {name}"))
        self.longest_ms = max(self.longest_ms, (ended - began) * 1e3)
        self.made += 1

    def set_weight(self, n, _turn):
        return self.proxy.ask(f"set server app/s1 weight {1 + n % 250}")

    def add_server(self, _n, turn):
        return self.proxy.ask(f"add server app/d{turn} 127.0.0.1:{self.origins[0]} weight 5")

    def enable_server(self, _n, turn):
        return self.proxy.ask(f"enable server app/d{turn}")

    def delete_server(self, _n, turn):
        # In every other turn the next file drops it.
        if turn % 2:
            return None
        at = f"app/d{turn}"
        return self.proxy.ask(f"disable server {at}; wait 5s srv-removable {at}; del server {at}")

    def apply_rules(self, n, _turn):
        rules = f" http-request set-header X-Turn {n}\n http-response set-header X-Turn {n}"
        self.proxy.apply(site(self.origins, rules, **self.always))

    def add_frontend(self, _n, _turn):
        lines = f" bind 127.0.0.1:{free_port()}\n default_backend app\n"
        return self.proxy.ask(f"add frontend extra from web <<\n{lines}")

    def delete_frontend(self, _n, _turn):
        return self.proxy.ask("del frontend extra")

    def apply_timeout(self, n, _turn):
        self.proxy.apply(site(self.origins, f" timeout client {60 + n % 50}s", **self.always))

    def renew(self, _n, _turn):
        return renew(self.proxy.ask, self.tls.file, self.tls.issue())

    # `apply` drops the overrides of the commands before it.
    KINDS = (
        ("set weight", set_weight),
        ("add server", add_server),
        ("enable server", enable_server),
        ("del server", delete_server),
        ("apply of rules", apply_rules),
        ("add frontend", add_frontend),
        ("del frontend", delete_frontend),
        ("apply of a timeout", apply_timeout),
    )
