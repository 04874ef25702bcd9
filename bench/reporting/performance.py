"""Writes docs/performance.md and its charts from files of results, with bench/performance-notes.md at its end."""

import json

from measuring.peers import BENCH, ROOT
from reporting import charts
from reporting.metrics import METRICS, shown
from reporting.verdict import share, spread, values
from workloads.catalogue import WORKLOADS

DOCS = ROOT / "docs"
IMAGES = DOCS / "img"
NOTES = BENCH / "performance-notes.md"
# Groups whose rows are traffic: a chart of shares, and a table of what a request costs.
TRAFFIC = ("traffic", "veth", "tls", "handshakes", "h2", "okd")
# A load of the machine above this, before the measurement began, disturbs it.
BUSY_LOAD = 0.5
TITLES = {
    "fairness": "Fairness",
    "idle": "Memory of idle clients",
    "rules": "Typical rules",
    "maps": "Maps",
    "tables": "Stick tables",
    "slow": "Slow clients",
    "attack": "Hostile clients of HTTP/2",
    "active": "Many active connections",
}
# What these tables leave out: it is said elsewhere, or means nothing there.
LEFT_OUT = {"per_core", "p50_us", "unsent", "connections", "cut", "asked_rate"}


class Results:
    """Files of results, of which later ones replace the rows of earlier ones."""

    def __init__(self, files):
        self.runs = [json.loads(file.read_text()) for file in files]
        self.cases = {name: case for run in self.runs for name, case in run["cases"].items()}
        self.programs = list(dict.fromkeys(name for run in self.runs for name in run["versions"]))

    def group(self, *names):
        """The measured rows of these groups."""
        return {name: case for name, case in self.cases.items() if case["group"] in names and case["turns"]}


def write(files):
    """Writes the document and its charts."""
    results = Results(files)
    IMAGES.mkdir(parents=True, exist_ok=True)
    for old in IMAGES.glob("performance-*.svg"):
        old.unlink()
    parts = [head(results), musts(results), traffic(results), handshakes(results), latency(results), curves(results)]
    parts += [plain(results, group, title) for group, title in TITLES.items()]
    parts += [changes(), absent(results), NOTES.read_text().strip()]
    (DOCS / "performance.md").write_text("\n\n".join(part for part in parts if part) + "\n")


def image(name, chart, alt):
    """Stores a chart; the line that shows it. Nothing where there is no chart."""
    if not chart:
        return []
    file = IMAGES / f"performance-{name}.svg"
    file.write_text(chart)
    return [f"![{alt}](img/{file.name})", ""]


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)]


def ratio(found):
    return f"{found[0]:.2f} ({found[1]:.2f} to {found[2]:.2f})" if found else ""


def number(case, program, metric):
    found = spread(values(case["turns"].get(program, []), metric))
    return METRICS[metric].text(found.median) if found else ""


def head(results):
    lines = [
        "# Performance",
        "",
        "<!-- Written by `bench/run` and `bench/report`: edit bench/performance-notes.md, or measure again. -->",
        "",
        "What Ballast costs beside HAProxy and nginx: `make bench` measures it and writes this file. Ratios are the claim:",
        "microseconds are those of the machine of the day. [bench/README.md](../bench/README.md) says how it is measured.",
        "",
    ]
    where = None
    for run in results.runs:
        machine = run["machine"]
        load = ", ".join(f"{one:.1f}" for one in machine["load"])
        if where != (where := describe(run)):
            lines += table(("what", "which"), where)
        measured = f"{run['at']}, {run['rounds']} rounds of {run['seconds']} s, load of the machine at the start {load}"
        lines.append(f"| measured | {measured} |")
    if any(run["machine"]["load"][0] > BUSY_LOAD for run in results.runs):
        lines += ["", "**The machine was busy with other work when this was measured: the shares are rough.**"]
    return "\n".join(lines).strip()


def describe(run):
    """The machine and the programs of a run, as rows."""
    machine = run["machine"]
    kind = "virtual" if machine.get("virtual") else "physical"
    words = f"{kind}, {machine['processors']} processors, {machine['cpu']}, {machine.get('memory_gb', '?')} GB"
    return [("machine", words), ("kernel", machine["kernel"]), *run["versions"].items()]


def musts(results):
    rows, met = [], 0
    for name, case in results.cases.items():
        for verdict in case["verdicts"]:
            value = ratio(verdict["share"])
            if not value and verdict["value"]:
                value = METRICS[verdict["metric"]].text(verdict["value"][0])
            mark = {True: "met", False: "**missed**", None: "not judged"}[verdict["met"]]
            met += verdict["met"] is True
            rows.append((f"`{name}`", case["about"], verdict["must"], value, mark))
    if not rows:
        return None
    text = [f"{met} of {len(rows)} are met. A share is the median of the rounds, with the lowest and the highest.", ""]
    return "\n".join(["## What must be reached", "", *text, *table(("workload", "what", "must", "measured", ""), rows)])


def traffic(results):
    cases = results.group(*TRAFFIC)
    if not cases:
        return None
    lines = ["## Traffic", ""]
    compared = {name: case for name, case in cases.items() if case["group"] != "okd"}
    lines += image("cpu", charts.shares(compared, results.programs), "CPU time of a request, of HAProxy's")
    okd = results.group("okd")
    lines += image("okd", charts.shares(okd, results.programs), "CPU time in OKD's cells, of HAProxy's")
    programs = results.programs
    others = [program for program in programs if program != "haproxy"]
    heads = ("workload", "per", *(f"{one}, us" for one in programs), *(f"{one} of HAProxy's" for one in others))
    rows = [
        (
            f"`{name}`", case["counted"], *(split(case, program) for program in programs),
            *(ratio(share(case, program, "cpu_us")) for program in others),
        )
        for name, case in cases.items()
    ]
    lines += ["CPU time of the proxy by the kernel's accounts, in brackets in user mode and in the kernel.", ""]
    lines += [*table(heads, rows), "", "### System calls, context switches and memory", ""]
    lines += ["System calls and context switches per request, connection or handshake; memory at its peak (VmHWM), MB.", ""]
    columns = {"calls": "calls", "switches": "switches", "peak_mb": "MB"}
    heads = ("workload", *(f"{word}, {program}" for word in columns.values() for program in programs))
    rows = [
        (f"`{name}`", *(number(case, program, one) for one in columns for program in programs))
        for name, case in cases.items()
    ]
    return "\n".join([*lines, *table(heads, rows)])


def split(case, program):
    """Processor time, and where it was spent."""
    whole, user, system = (number(case, program, one) for one in ("cpu_us", "user_us", "system_us"))
    return f"{whole} ({user} + {system})" if whole else ""


def handshakes(results):
    cases = results.group("handshakes")
    if not cases:
        return None
    chart = charts.amounts("Handshakes a second of one core's time", cases, results.programs, "per_core")
    heads = ("workload", "what", *results.programs)
    rows = [
        (f"`{name}`", case["about"], *(number(case, program, "per_core") for program in results.programs))
        for name, case in cases.items()
    ]
    lines = image("handshakes", chart, "Handshakes a second of one core's time")
    return "\n".join(["## Handshakes a second a core", "", *lines, *table(heads, rows)])


def latency(results):
    cases = results.group("latency")
    if not cases:
        return None
    heads = ("workload", "program", "asked", "p50 us", "p99 us", "p99/0.1s", "p99.9/0.1s", "of HAProxy's", "unsent")
    rows = []
    for name, case in cases.items():
        for program in case["turns"]:
            numbers = [number(case, program, one) for one in ("asked_rate", "p50_us", "p99_us", "p99_tenth_us", "p999_tenth_us")]
            unsent = number(case, program, "unsent")
            rows.append((f"`{name}`", program, *numbers, ratio(share(case, program, "p99_tenth_us")), unsent))
    text = "Every request is due at its time, and its latency counts from then, not from when it could be sent. "
    text += "`p99/0.1s` is that of the median tenth of a second: stalls of the whole machine do not change it."
    lines = image("latency", charts.latencies(cases, results.programs), "p99/0.1s of the latency")
    return "\n".join(["## Latency at equal rates", "", text, "", *lines, *table(heads, rows)])


def curves(results):
    known = {}
    for name, case in results.cases.items():
        if case["curve"] and case["turns"]:
            known.setdefault(case["curve"]["name"], (case["curve"], {}))[1][name] = case
    parts = []
    for name, (curve, cases) in known.items():
        cases = dict(sorted(cases.items(), key=lambda one: one[1]["x"]))
        metric = curve["metric"]
        rows = [
            (f"{case['x']:,}", *(number(case, one, metric) for one in results.programs), ratio(share(case, "ballast", metric)))
            for case in cases.values()
        ]
        heads = (curve["x"], *results.programs, "Ballast's share")
        lines = image(name, charts.curve(cases, results.programs, curve), f"{curve['title']}: {curve['y']}")
        parts.append("\n".join([f"### {curve['title']}", "", f"{curve['y']}.", "", *lines, *table(heads, rows)]))
    return "\n\n".join(["## How cost grows", *parts]) if parts else None


def plain(results, group, title):
    """A table of all numbers of a group, a row for each program."""
    cases = results.group(group)
    if not cases:
        return None
    had = {metric for case in cases.values() for metric in shown(case["turns"])}
    # The number that is compared is shown in any case.
    claims = {case["metric"] for case in cases.values()}
    columns = [one for one in METRICS if one in had and (one in claims or one not in LEFT_OUT)]
    heads = ("workload", "program", *(METRICS[one].head for one in columns), "of HAProxy's")
    rows = [
        (f"`{name}`", program, *(number(case, program, one) for one in columns), ratio(share(case, program, case["metric"])))
        for name, case in cases.items()
        for program in case["turns"]
    ]
    words = "; ".join(f"{METRICS[one].head}: {METRICS[one].words}" for one in columns)
    return "\n".join([f"## {title}", "", *table(heads, rows), "", f"{words}."])


def changes():
    """The table of the last run of bench/chaos, if there is one."""
    files = sorted((BENCH / "results").glob("chaos-*.json"))
    if not files:
        return None
    kept = json.loads(files[-1].read_text())
    mark = {True: "met", False: "**missed**", None: ""}
    rows = [(f"`{one['row']}`", one["what"], one["value"], one["target"], mark[one["holds"]]) for one in kept["rows"]]
    text = f"Measured by `make chaos` at {kept['at']}."
    return "\n".join(["## What a change costs those who are served", "", text, "", *table(("row", "what", "measured", "must", ""), rows)])


def absent(results):
    """What was not measured, and why."""
    rows = []
    for name, case in results.cases.items():
        if case["skipped"]:
            rows.append((f"`{name}`", f"skipped: {case['skipped']}"))
        rows += [(f"`{name}`", f"{program} broke: {fault.splitlines()[0]}") for program, fault in case["faults"].items()]
    left = [f"`{one.name}`" for one in WORKLOADS if one.name not in results.cases]
    lines = ["## What is not measured here", ""]
    if rows:
        lines += [*table(("workload", "why"), rows), ""]
    if left:
        lines += [f"Not part of these runs (`bench/run --case NAME`, `bench/run --all`): {', '.join(left)}."]
    return "\n".join(lines).strip() if rows or left else None
