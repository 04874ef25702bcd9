"""Turns what was seen of a crowd into counts: which server got how much of it is compared, not who got it."""

import collections
import re

# Not `lbtot`: whether a slot was free or waited for is a matter of who is first, and only the first counts there.
STAT = ("econ", "eresp", "wretr", "wredis", "hrsp_2xx", "hrsp_5xx", "cli_abrt", "srv_abrt", "stot")
# What a request that fails counts with each of its tries. They come together: one request more or less moves such a count
# by all of them.
OF_TRIES = ("econ", "eresp", "wretr", "stot")
RETRIES = 3
# Counts of two plays of one program differ by less than so many standard deviations.
DEVIATIONS_MAX = 4
# Clients take turns: who is first in a turn is so in most of them, and moves a count by the turns of one client.
TURNS = 30


def tries_of(scenario):
    """How often a request of a scenario is tried at most."""
    lines = [*scenario.get("defaults", []), *[line for each in scenario.get("sections", []) for line in each["lines"]]]
    retries = [int(line.split()[1]) for line in lines if re.fullmatch(r"retries \d+", line)]
    return 1 + (max(retries) if retries else RETRIES)


def counted(seen, scenario):
    """The counts of an observation: answers by status, requests by server, log lines, and counters. What counts tries is
    in requests that use up all of theirs."""
    counts, tries, of_tries = collections.Counter(), tries_of(scenario), set()
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
        of_tries.add(f"requests of {name}")
        for connection in connections:
            counts[f"requests of {name}"] += len(connection.get("requests", []))
    for line in seen["log"]:
        counts[f"line {line}"] += 1
    for row, columns in seen["stat"].items():
        of_tries |= {f"{row}.{column}" for column in OF_TRIES if not row.endswith("FRONTEND")}
        for column in STAT:
            if number := int(columns.get(column, 0)):
                counts[f"{row}.{column}"] += number
    parts = {name: number / tries if name in of_tries else number for name, number in counts.items()}
    return {re.sub(r"\s+", " ", name): round(number) for name, number in parts.items()}


def agree(one, other):
    """Whether two counts may be those of one program. The variance of a count is at most the count itself where what
    is counted happens one by one (Poisson); a balanced choice varies less."""
    return abs(one - other) <= TURNS + DEVIATIONS_MAX * (one + other) ** 0.5
