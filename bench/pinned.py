"""Proxies on one processor, and wrk on another: what `bench/rules` and `bench/tables` measure with."""

import http.client
import pathlib
import re
import subprocess
import tempfile
import threading
import time

PROXY_CPU, LOAD_CPU = "0", "1"


def pin(proxy):
    """Keeps a proxy on its processor."""
    command = ["taskset", "-apc", PROXY_CPU, str(proxy.process.pid)]
    subprocess.run(command, check=True, capture_output=True)


def processor_ns(pid):
    """Nanoseconds of processor time so far."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


def load(port, request, seconds, first=1):
    """Runs the load; returns how many requests were answered. `request` is an expression of Lua for
    the n-th of them, from `first` on."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"local n = {first - 1}\nrequest = function() n = n + 1 return {request} end\n")
        script.flush()
        command = ["taskset", "-c", LOAD_CPU, "wrk", "-t1", "-c8", f"-d{seconds}s", "-s", script.name]
        done = subprocess.run(
            [*command, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True
        )
    if fault := re.search(r"Non-2xx.*|Socket errors.*", done.stdout):
        raise SystemExit(f"bench: {request}: {fault[0]}")
    return int(re.search(r"(\d+) requests in", done.stdout)[1])


def cost(proxy, port, request, seconds, first=1):
    """Nanoseconds of processor time a request."""
    before = processor_ns(proxy.process.pid)
    requests = load(port, request, seconds, first)
    return (processor_ns(proxy.process.pid) - before) / requests


def longest_answer_ms(port, path, work):
    """The longest time that a client waits for an answer while `work` runs."""
    longest, done = 0.0, threading.Event()

    def ask():
        nonlocal longest
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while not done.is_set():
            begun = time.monotonic()
            client.request("GET", path)
            client.getresponse().read()
            longest = max(longest, time.monotonic() - begun)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        work()
    finally:
        done.set()
        thread.join()
    return longest * 1e3
