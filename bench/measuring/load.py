"""Load on a proxy: wrk, and where wrk cannot (TLS, HTTP/2, uploads, fixed rates) ballast-load. Both
give what was counted: requests, their rate, and latencies in microseconds."""

import json
import re
import statistics
import subprocess
import tempfile

from measuring.server import LOAD_CPU

# A load that has not ended so long after its time never will.
LATE_SECONDS_MAX = 60
UNITS_US = {"us": 1, "ms": 1e3, "s": 1e6}


class LoadFailed(RuntimeError):
    """The load did not go as it should: nothing can be concluded from it."""


def wrk(url, connections, seconds, words=(), script=None, may_close=False, niceness=0):
    """Runs wrk. `script` is Lua; with `may_close` the server closes each connection."""
    command = ["nice", "-n", str(niceness), "taskset", "-c", LOAD_CPU, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *words]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        if script:
            file.write(script)
            file.flush()
            command += ["-s", file.name]
        done = subprocess.run([*command, url], capture_output=True, text=True, timeout=seconds + LATE_SECONDS_MAX)
    text = done.stdout
    if done.returncode:
        raise LoadFailed(f"wrk: {done.stderr.strip() or text.strip()}")
    fault = re.search(r"Non-2xx.*|Socket errors.*", text)
    # wrk counts the close that it requested as a read error when it comes with the response.
    if fault and not (may_close and re.search(r"connect 0.*write 0, timeout 0", fault[0])):
        raise LoadFailed(f"wrk: {fault[0]}")
    requests = int(re.search(r"(\d+) requests in", text)[1])
    if not requests:
        raise LoadFailed("wrk: no request was answered")
    latency = {
        percent: float(number) * UNITS_US[unit]
        for percent, number, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s)", text)
    }
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])
    return {"requests": requests, "rate": rate, "p50_us": latency["50"], "p99_us": latency["99"]}


def ballast_load(program, target, mode, connections, seconds, words=(), may_lag=False):
    """Runs ballast-load. With `may_lag` requests that could not be sent in time are no failure: they
    are counted as `unsent`."""
    command = ["taskset", "-c", LOAD_CPU, program, mode, "--json", "--connections", str(connections)]
    command += ["--duration", f"{round(seconds * 1000)}ms", *map(str, words), target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + LATE_SECONDS_MAX)
    if not done.stdout.strip():
        raise LoadFailed(f"ballast-load: {done.stderr.strip()}")
    said = json.loads(done.stdout)
    failed = said["failed"] + said["retried"] + (0 if may_lag else said["unsent"])
    if failed or not said["ok"]:
        kinds = {name: said[name] for name in ("failed", "retried", "unsent") if said[name]}
        raise LoadFailed(f"ballast-load: {kinds or 'no answer'}, {said['ok']} ok: {said['first_failures'][:1]}")
    if tls := said.get("tls"):
        other = tls["full"] if "always" in words else tls["resumed"] if "never" in words else 0
        # Handshakes that are not measured cost the proxy something, too.
        if other or tls["warming"] > 0.02 * said["ok"] + 2 * connections:
            raise LoadFailed(f"ballast-load: not the handshakes that are measured here: {tls}")
    latency = said["latency_us"]
    return {
        "requests": said["ok"],
        "rate": said["rate"],
        "unsent": said["unsent"],
        "p50_us": latency["p50"],
        "p99_us": latency["p99"],
        "p999_us": latency["p999"],
        **typical(said["series"]),
    }


def typical(series):
    """Latencies of the median tenth of a second: what a stall of the whole machine, which takes
    milliseconds and comes a few times a second on a virtual one, does not change. The first tenth
    has the connecting in it. One without an answer counts with its whole length."""
    length_us = 1e3 * series["interval_ms"]
    tenths = series["points"][1:] or series["points"]
    found = {}
    for name in ("p99", "p999"):
        latencies = [length_us if point[name] is None else point[name] for point in tenths]
        found[f"{name}_tenth_us"] = statistics.median(latencies)
    return found
