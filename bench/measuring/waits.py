"""How long a client waits while a proxy is busy with something else."""

import http.client
import threading
import time


def longest_answer_ms(place, port, path, work):
    """The longest time that a client waits for an answer while `work` runs."""
    longest, done = 0.0, threading.Event()
    faults = []

    def ask():
        nonlocal longest
        try:
            with place.inside("client"):
                client = http.client.HTTPConnection(place.proxy, port, timeout=60)
                client.connect()
            while not done.is_set():
                began = time.monotonic()
                client.request("GET", path)
                client.getresponse().read()
                longest = max(longest, time.monotonic() - began)
        except (OSError, http.client.HTTPException) as fault:
            faults.append(fault)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        work()
    finally:
        done.set()
        thread.join()
    if faults:
        raise RuntimeError(f"a client failed meanwhile: {faults[0]}")
    return longest * 1e3
