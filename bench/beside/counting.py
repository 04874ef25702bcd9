"""Turns what was seen of a crowd into counts: which server got how much of it is compared, not who got it."""

import collections
import re

# Not `lbtot`: whether a slot was free or waited for is a matter of who is first, and only the first counts there.
STAT = ("econ", "eresp", "wretr", "wredis", "hrsp_2xx", "hrsp_5xx", "cli_abrt", "srv_abrt", "stot")
# Counts of two plays of one program differ by less than so many standard deviations.
DEVIATIONS_MAX = 4
# Clients take turns: who is first in a turn is so in most of them, and moves a count by the turns of one client.
TURNS = 30


def counted(seen):
    """The counts of an observation: answers by status, requests by server, log lines, and counters."""
    counts = collections.Counter()
    for client in seen["clients"]:
        if not isinstance(client, dict):
            counts[f"client {client}"] += 1
            continue
        for response in client.get("responses", []):
            counts[f"answer {response[0]}"] += 1
        for name, stream in client.items():
            if name.startswith("stream"):
                counts[f"answer {stream['heads'][-1][0] if stream['heads'] else stream['end']}"] += 1
    for name, connections in seen["servers"].items():
        for connection in connections:
            counts[f"requests of {name}"] += len(connection.get("requests", []))
    for line in seen["log"]:
        counts[f"line {line}"] += 1
    for row, columns in seen["stat"].items():
        for column in STAT:
            if number := int(columns.get(column, 0)):
                counts[f"{row}.{column}"] += number
    return {re.sub(r"\s+", " ", name): number for name, number in counts.items()}


def agree(one, other):
    """Whether two counts may be those of one program. The variance of a count is at most the count itself where what
    is counted happens one by one (Poisson); a balanced choice varies less."""
    return abs(one - other) <= TURNS + DEVIATIONS_MAX * (one + other) ** 0.5
