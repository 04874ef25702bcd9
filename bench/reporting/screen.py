"""The table on the screen."""

import statistics

from reporting.metrics import METRICS, shown
from reporting.verdict import measured, share, values

# Not worth a column here; they are in the file of the results.
HIDDEN = {"per_core", "connections", "cut", "start_cpu_ms", "asked_rate", "p99_alone_us", "kernel_mb"}


def show(name, case):
    """Prints the block of one workload."""
    print(f"\n{name}: {case['about']}")
    names = [one for one in shown(case["turns"]) if one not in HIDDEN]
    if not any(turn.get("unsent") for turns in case["turns"].values() for turn in turns):
        names = [one for one in names if one != "unsent"]
    heads = [METRICS[one].head for one in names]
    widths = [max(len(head), 8) + 2 for head in heads]
    if case["turns"]:
        print(f"  {'':12}" + "".join(f"{head:>{width}}" for head, width in zip(heads, widths)) + f"{'of haproxy':>26}")
    for program, turns in case["turns"].items():
        cells = []
        for one, width in zip(names, widths):
            found = values(turns, one)
            cells.append(f"{METRICS[one].text(statistics.median(found)) if found else '':>{width}}")
        print(f"  {program:12}" + "".join(cells) + f"{share_text(case, program):>26}", flush=True)
    for program, fault in case["faults"].items():
        print(f"  {program:12} BROKEN: {fault}")
    if case["skipped"]:
        print(f"  SKIPPED: {case['skipped']}")
    for verdict in case["verdicts"]:
        mark = {True: "met", False: "MISSED", None: "not judged"}[verdict["met"]]
        print(f"  {verdict['must']}: {measured(verdict)}: {mark}", flush=True)


def share_text(case, program):
    """The share of HAProxy's, with the lowest and the highest of the rounds."""
    found = share(case, program, case["metric"])
    return f"{found.median:.3f} ({found.low:.3f}-{found.high:.3f})" if found else ""
