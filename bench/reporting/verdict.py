"""What the turns of a workload say: medians, their spread, shares of HAProxy's, and whether each must
is met."""

import statistics
import typing

from reporting.metrics import METRICS


class Spread(typing.NamedTuple):
    """The median of some turns, and the least and the greatest."""

    median: float
    low: float
    high: float


def spread(values):
    values = [value for value in values if value is not None]
    return Spread(statistics.median(values), min(values), max(values)) if values else None


def values(turns, metric):
    """A number of all turns that have it."""
    return [turn[metric] for turn in turns if metric in turn]


def share(case, program, metric, of="haproxy"):
    """The share of HAProxy's number, round by round: a disturbance in a round affects both."""
    pairs = zip(case["turns"].get(program, []), case["turns"].get(of, []))
    both = [(one[metric], other[metric]) for one, other in pairs if metric in one and metric in other]
    return spread([a / b for a, b in both if b > 0])


def judge(case):
    """The verdict on each must: `met` is None where it could not be judged."""
    found = []
    ours = case["turns"].get("ballast", [])
    theirs = case["turns"].get("haproxy", [])
    for must in case["musts"]:
        metric = must["metric"]
        mine, other = values(ours, metric), values(theirs, metric)
        met, ratio = None, None
        if must["limit"] is not None and mine:
            met = statistics.median(mine) <= must["limit"]
        elif must["limit"] is None and mine and other:
            ratio = share(case, "ballast", metric)
            allowed = statistics.median(other) * must["share"] + must["plus"]
            met = bool(ratio and ratio.median <= must["share"])
            if must["plus"]:
                # What is near zero has a ratio that means nothing.
                met = met or statistics.median(mine) <= allowed
        found.append({
            "must": must["text"],
            "metric": metric,
            "value": spread(mine),
            "haproxy": spread(other),
            "share": ratio,
            "met": met,
        })
    return found


def measured(verdict):
    """The measured value that a must is about, in words."""
    if verdict["share"]:
        return f"{verdict['share'][0]:.3f} of HAProxy's"
    return METRICS[verdict["metric"]].text(verdict["value"][0]) if verdict["value"] else "nothing"


def missed(name, case):
    """What was missed, each in a few words."""
    for verdict in case["verdicts"]:
        if verdict["met"] is False:
            yield f"{name}: {measured(verdict)}, must be {verdict['must']}"
