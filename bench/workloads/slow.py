"""Slow clients: 500 that take a body of 1 MB in small pieces, or give the head of a request byte by
byte, beside 32 that do neither. What a slow client costs in memory, and what the others notice."""

import dataclasses
import socket
import threading
import time

from measuring import kernel
from measuring.clients import SECONDS_MAX
from workloads.idle import require_descriptors
from workloads.model import Must, Workload

CLIENTS, ACTIVE, RATE = 500, 32, 3000
PERIOD_SECONDS = 0.25
PIECE_BYTES = 16384
READERS_REQUEST = b"GET /10m HTTP/1.1\r\nHost: slow.example.com\r\n\r\n"
WRITERS_REQUEST = b"GET /1k HTTP/1.1\r\nHost: slow.example.com\r\nX-Long: " + b"x" * 4000


@dataclasses.dataclass(kw_only=True)
class Slow(Workload):
    """Slow clients beside others."""

    is_reading: bool

    def turn(self, scene, program):
        require_descriptors(2 * CLIENTS)
        with scene.proxy(program, self.peer, CLIENTS=CLIENTS + 400) as proxy:
            scene.wait(proxy, "/1k")
            self.load(scene, proxy, 0.5)
            _, alone = self.load(scene, proxy, scene.seconds)
            before, sockets = kernel.data_bytes(proxy.pid), kernel.socket_bytes()
            with Crawlers(scene.place, proxy.port, self.is_reading) as crawlers:
                time.sleep(2 * PERIOD_SECONDS)  # each has had its turn
                used, beside = self.load(scene, proxy, scene.seconds)
                memory = kernel.data_bytes(proxy.pid) - before
                sockets = kernel.socket_bytes() - sockets
            if crawlers.broken:
                raise RuntimeError(f"{crawlers.broken} of {CLIENTS} slow clients were cut off")
        return {
            "bytes_each": memory / CLIENTS,
            "kernel_bytes_each": sockets / CLIENTS,
            "cpu_us": used["cpu_us"] / beside["requests"],
            "p99_us": beside["p99_us"],
            "p99_alone_us": alone["p99_tenth_us"],
            "p99_growth": beside["p99_tenth_us"] / alone["p99_tenth_us"],
            "unsent": beside["unsent"],
        }

    def load(self, scene, proxy, seconds):
        words = ["--path", "/1k", "--rate", RATE]
        return kernel.used_during(
            proxy.pid, lambda: scene.load(proxy.port, "http", ACTIVE, seconds, words, may_lag=True)
        )


class Crawlers:
    """Slow clients, moved on by a thread; `broken` counts those that were cut off."""

    def __init__(self, place, port, is_reading):
        self.place, self.port, self.is_reading = place, port, is_reading
        self.broken, self.done = 0, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        with self.place.inside("client"):
            self.sockets = [self.open() for _ in range(CLIENTS)]
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        for one in self.sockets:
            one.close()

    def open(self):
        one = socket.socket()
        one.settimeout(SECONDS_MAX)
        one.connect((self.place.proxy, self.port))
        if self.is_reading:
            one.sendall(READERS_REQUEST)
        one.setblocking(False)
        return one

    def run(self):
        turn = 0
        while not self.done.wait(PERIOD_SECONDS):
            for one in list(self.sockets):
                try:
                    if self.is_reading:
                        is_cut = not one.recv(PIECE_BYTES)
                    else:
                        is_cut = not one.send(WRITERS_REQUEST[turn : turn + 1])
                except BlockingIOError:
                    continue
                except OSError:
                    is_cut = True
                if is_cut:
                    self.broken += 1
                    self.sockets.remove(one)
            turn += 1


def slow(name, about, is_reading):
    return Slow(
        name=name, group="slow", about=about, peer="slow", metric="bytes_each", musts=[Must("bytes_each", 1.0)],
        rounds_max=3, is_reading=is_reading,
    )


WORKLOADS = [
    slow("slow-readers", f"memory of each of {CLIENTS} clients that read 10 MB slowly", True),
    slow("slow-writers", f"memory of each of {CLIENTS} clients that send a head byte by byte", False),
]
