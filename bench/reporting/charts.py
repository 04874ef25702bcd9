"""The charts of docs/performance.md, each in a file of its own in docs/img."""

import statistics

from reporting import svg
from reporting.verdict import share, values


def median(turns, metric):
    found = values(turns, metric)
    return statistics.median(found) if found else None


def shares(cases, programs, metric="cpu_us"):
    """Bars: each program's share of HAProxy's number."""
    rows = []
    for name, case in cases.items():
        found = {program: share(case, program, metric) for program in programs}
        row = {program: one.median for program, one in found.items() if one and program != "haproxy"}
        if row:
            rows.append((name, row))
    return svg.bars("CPU time of a request or connection, of HAProxy's (the line is 1)", rows, 1.0) if rows else None


def amounts(title, cases, programs, metric):
    """Bars: a number of each program."""
    rows = []
    for name, case in cases.items():
        row = {program: median(case["turns"].get(program, []), metric) for program in programs}
        row = {program: value for program, value in row.items() if value is not None}
        if row:
            rows.append((name, row))
    return svg.bars(title, rows) if rows else None


def curve(cases, programs, curve):
    """Lines: how a number grows. None where there are not two points."""
    series = {}
    for program in programs:
        points = [(case["x"], median(case["turns"].get(program, []), curve["metric"])) for case in cases.values()]
        points = [(x, y) for x, y in points if y is not None]
        if len(points) > 1:
            series[program] = points
    return svg.lines(curve["title"], series, curve["x"], curve["y"]) if series else None


def latencies(cases, programs):
    """Lines: p99 of the latency over the rate that was asked for."""
    series = {}
    for program in programs:
        points = [
            (median(case["turns"].get(program, []), "asked_rate"), median(case["turns"].get(program, []), "p99_tenth_us"))
            for case in cases.values()
        ]
        points = [(x, y) for x, y in points if x and y]
        if len(points) > 1:
            series[program] = points
    return svg.lines("p99/0.1s of the latency at equal rates", series, "requests a second", "us") if series else None
