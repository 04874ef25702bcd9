"""Every certificate of a large site is renewed while handshakes go on."""

import concurrent.futures
import os
import pathlib
import statistics
import tempfile
import threading
import time

from certificates import Authority, renew
from measuring.load import typical
from programs import Load, Proxy, Settings, site
from table import classes, failures


class Names:
    """Thousands of names, each with a file of its own, and two authorities that sign for them in
    turn."""

    def __init__(self, count):
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=Settings.directory))
        names = [f"n{n:05}.example" for n in range(count)]
        (self.folder / "site").mkdir()
        self.files = {str(self.folder / "site" / f"{name}.pem"): name for name in names}
        self.bind = f" ssl crt {self.folder}/site strict-sni"
        self.list = self.folder / "names"
        self.list.write_text("\n".join(names))
        self.authorities = {word: Authority(word) for word in ("first", "second")}
        for word, authority in self.authorities.items():
            (self.folder / word).write_text(authority.certificate)
        both = "".join(one.certificate for one in self.authorities.values())
        (self.folder / "both").write_text(both)
        for file, content in self.issued("first").items():
            pathlib.Path(file).write_text(content)

    def issued(self, word):
        """A new certificate for every file, by this authority."""
        return {file: self.authorities[word].issue(name) for file, name in self.files.items()}

    def load(self, port, trusted, *words):
        """Full handshakes, each for one of the names, whose certificate must cover it. The client's half
        costs as much as the proxy's, and more with keys of ML-KEM, for which two processors are too few."""
        words = ("handshakes", "--groups", "X25519", "--sni-file", self.list, "--cacert", self.folder / trusted, *words)
        return Load(*words, f"127.0.0.1:{port}")

    def load_at(self, port, rate, duration="10m"):
        words = ("--sni-random", "--connections", 64, "--rate", rate, "--duration", duration)
        return self.load(port, "both", *words)


def p99(counted):
    """Of the handshakes in the median tenth of a second: stalls of the machine do not change it."""
    return typical(counted["series"])["p99_tenth_us"]


def rate_carried(names, port):
    """The highest rate of handshakes that this machine carries."""
    for rate in (2000, 1500, 1000, 700, 500, 300):
        counted = names.load_at(port, rate, "2s").finish()
        quick = p99(counted) < 20_000
        if quick and not failures(counted) and counted["rate"] > 0.97 * rate:
            break
    return rate


def yield_to_others():
    """The operator's tool is on a machine of its own elsewhere; here it takes what processor time is left."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)


def burst(proxy, names, word):
    """Renews all certificates; returns how long it took."""
    issued = names.issued(word)
    began = time.monotonic()
    for file, content in issued.items():
        if Settings.broken:
            pathlib.Path(file).write_text(content)
        else:
            renew(proxy.ask, file, content)
    if Settings.broken:
        proxy.restart()
    return time.monotonic() - began


def renewal(table, origins):
    """Five thousand certificates are renewed in one burst of commands while handshakes go on."""
    count = Settings.scaled(5_000)
    names = Names(count)
    took, busy, calm, wrong_after = [], [], [], 0
    with Proxy(Settings.ballast, site(origins, bind=names.bind)) as proxy:
        rate = rate_carried(names, proxy.port)
        for word in ("second",) if Settings.short else ("second", "first", "second"):
            load = names.load_at(proxy.port, rate)
            with concurrent.futures.ThreadPoolExecutor(1, initializer=yield_to_others) as operator:
                took.append(operator.submit(burst, proxy, names, word).result())
            busy.append(load.stop())
            calm.append(names.load_at(proxy.port, rate, f"{max(1, round(took[-1]))}s").finish())
            # Every name must have its new certificate.
            wrong_after += failures(names.load(proxy.port, word, "--requests", count).finish())
    what = f"{count:,} certificates renewed, {len(took)} times: longest"
    table.add("renewal", what, f"{max(took):.1f} s", "< 10 s", max(took) < 10)
    reached = statistics.median(one["rate"] for one in busy)
    table.add("renewal", "handshakes/s: asked for, reached", f"{rate:,}, {reached:,.0f}")
    # The load is ended by a signal, so that a handshake that is due then is never begun.
    wrong = sum(one["failed"] + one["retried"] for one in busy)
    what = f"failed of {sum(one['ok'] for one in busy):,}"
    table.add("renewal", what, wrong, "0", wrong == 0)
    if wrong:
        table.add("renewal", "of them", classes(busy[0]))
    p99s = [[p99(one) for one in turns] for turns in (busy, calm)]
    ratio = statistics.median(a / b for a, b in zip(*p99s))
    table.add("renewal", "p99/0.1s of handshakes, of quiet", f"{ratio:.2f}", "< 2", ratio < 2)
    # Stalls of the worker that are shorter than half of the time show here; so do those of the machine.
    wholes = [[one["latency_us"]["p99"] / 1e3 for one in turns] for turns in (busy, calm)]
    excess = statistics.median(a - 2 * b for a, b in zip(*wholes))
    table.add("renewal", "p99 of the whole time, beyond twice quiet's", f"{max(0, excess):.1f} ms", "< 20 ms", excess < 20)
    text = ", ".join(f"{statistics.median(one) / 1e3:.2f}" for one in p99s)
    table.add("renewal", "p99/0.1s meanwhile, quiet", f"{text} ms")
    table.add("renewal", "old or wrong certificates afterwards", wrong_after, "0", wrong_after == 0)
