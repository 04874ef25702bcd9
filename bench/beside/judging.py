"""Compares what was seen on both programs, and knows which differences are meant."""

import json
import pathlib
import re
import tomllib
import typing

from counting import agree

KNOWN = pathlib.Path(__file__).resolve().parent / "known.toml"


# Counts of a crowd.
COUNTED = "counted"
# What an observation has for the reader alone.
SAID = "said"
# Which of two streams ends first, and has the first line, is chance.
LINES = "log"
# HAProxy counts bytes of its inner form of a message, which is longer by some for each head and field.
BYTES = ("bin", "bout")
FORM_BYTES = 250
# The place of a server's connections.
SERVER = re.compile(r"servers\.\w+")
# Behind the requests of a connection: the next one, of which the server read nothing.
HEAD = re.compile(r"[A-Z]+ \S+ HTTP/1\.[01]\r\n")


class Difference(typing.NamedTuple):
    """One place in which the observations differ."""

    place: str
    haproxy: str
    ballast: str

    def __str__(self):
        return f"{self.place}: haproxy {self.haproxy}, ballast {self.ballast}"


def differences(haproxy, ballast, place=""):
    """All places that differ, down to single texts."""
    if type(haproxy) is type(ballast) and isinstance(haproxy, dict):
        found = []
        for key in [*haproxy, *[key for key in ballast if key not in haproxy]]:
            if key == SAID or key in BYTES and about_equal(haproxy, ballast, key):
                continue
            if place == COUNTED and agree(haproxy.get(key, 0), ballast.get(key, 0)):
                continue
            found += differences(haproxy.get(key), ballast.get(key), f"{place}.{key}".lstrip("."))
        return found
    both_lists = isinstance(haproxy, list) and isinstance(ballast, list)
    if both_lists and place == LINES and len(haproxy) == len(ballast):
        return differing_lines(haproxy, ballast)
    if both_lists and (len(haproxy) == len(ballast)):
        if SERVER.fullmatch(place) and is_spread(haproxy, ballast):
            found = [Difference(f"{place}.spread", *map(shown, map(carried, (haproxy, ballast))))]
            return found + differences(*unpaired(haproxy, ballast), place)
        found = []
        for number, (one, other) in enumerate(zip(haproxy, ballast)):
            found += differences(one, other, f"{place}.{number}")
        return found
    if both_lists and all(isinstance(item, str) for item in haproxy + ballast):
        lost = [item for item in haproxy if item not in ballast]
        more = [item for item in ballast if item not in haproxy]
        if lost or more:
            return [Difference(place, shown(lost), shown(more))]
    return [] if haproxy == ballast else [Difference(place, shown(haproxy), shown(ballast))]


def differing_lines(haproxy, ballast):
    """What lines differ in, without those that both have, wherever they stand; a place is that of HAProxy's line."""
    more = list(ballast)
    lost = []
    for number, line in enumerate(haproxy):
        if line in more:
            more.remove(line)
        else:
            lost.append((number, line))
    return [Difference(f"{LINES}.{number}", shown(line), shown(other)) for (number, line), other in zip(lost, more)]


def carried(connections):
    """What each connection carried: requests, or streams. What stands behind them is of the last one, unless it is the
    next request."""
    lists = []
    for each in connections:
        items = [*each.get("requests", []), *each.get("streams", [])] if isinstance(each, dict) else []
        if behind := isinstance(each, dict) and each.get("after them"):
            items = [*items, behind] if HEAD.match(behind) else [*items[:-1], [*items[-1:], behind]]
        lists.append(items)
    return lists


def is_spread(haproxy, ballast):
    """Whether two servers got the same requests, over other connections."""
    one, other = carried(haproxy), carried(ballast)
    return one != other and in_order(sum(one, [])) == in_order(sum(other, []))


def unpaired(haproxy, ballast):
    """What else is known of the connections, without those that are the same on both."""
    one, other = ([without_what_it_carried(each) for each in side] for side in (haproxy, ballast))
    for each in list(one):
        if each in other:
            one.remove(each)
            other.remove(each)
    return one, other


def without_what_it_carried(connection):
    if not isinstance(connection, dict):
        return connection
    return {name: value for name, value in connection.items() if name not in ("requests", "streams", "after them")}


def in_order(items):
    return sorted(items, key=json.dumps)


def about_equal(haproxy, ballast, key):
    """Whether two rows of counters have the same number of bytes, but for how each counts heads."""
    messages = max(int(row.get(name, 0)) for row in (haproxy, ballast) for name in ("req_tot", "stot"))
    far = abs(int(haproxy.get(key, 0)) - int(ballast.get(key, 0)))
    return far <= FORM_BYTES * (messages + 1)


def shown(value):
    return "nothing" if value is None or value == [] else json.dumps(value)


def who_has_more(difference):
    """The name of the program whose number is the larger one; None where one has no number."""
    texts = (difference.haproxy, difference.ballast)
    if not all(re.fullmatch(r'"?\d+"?|nothing', text) for text in texts):
        return None
    haproxy, ballast = (0 if text == "nothing" else int(text.strip('"')) for text in texts)
    return "haproxy" if haproxy > ballast else "ballast"


def words_of(text):
    """The lines and words of what was seen, without their order."""
    return sorted(re.split(r'(?:\\r\\n|[" ])+', text))


def clients_at(scenario, place):
    """The client whose place it is, as JSON; all clients, where a place is of none."""
    clients = [json.dumps(client) for client in scenario.get("clients", [])]
    number = re.match(r"clients\.(\d+)", place)
    return clients[int(number[1]) :][:1] if number else clients


class Known:
    """The rows of `known.toml`: differences that are meant, each with its reason."""

    def __init__(self, path=KNOWN):
        self.rows = tomllib.loads(path.read_text())
        self.used = {}

    def explains(self, scenario, difference):
        """The name of the row that explains a difference; None when none does."""
        for name, row in self.rows.items():
            pairs = (
                ("place", difference.place),
                ("haproxy", difference.haproxy),
                ("ballast", difference.ballast),
            )
            if not all(re.search(row[key], text) for key, text in pairs if key in row):
                continue
            if "only" in row and len({re.sub(row["only"], "", text) for _, text in pairs[1:]}) > 1:
                continue
            if "both" in row and not re.search(row["both"], f"{difference.haproxy} => {difference.ballast}"):
                continue
            if "more" in row and row["more"] != who_has_more(difference):
                continue
            if row.get("same_words") and words_of(difference.haproxy) != words_of(difference.ballast):
                continue
            clients = clients_at(scenario, difference.place)
            if "client" in row and not any(re.search(row["client"], text) for text in clients):
                continue
            if "scenario" in row and not re.search(row["scenario"], json.dumps(scenario), re.S):
                continue
            return name
        return None

    def unexplained(self, scenario, found):
        """What no row explains. A row with `also` explains what else differs in these places, too: one cause shows in
        responses, logs and counters."""
        left, also = [], []
        for difference in found:
            name = self.explains(scenario, difference)
            if name is None:
                left.append(difference)
                continue
            self.used[name] = self.used.get(name, 0) + 1
            also += [self.rows[name]["also"]] if "also" in self.rows[name] else []
        return [each for each in left if not any(re.search(places, each.place) for places in also)]


class Sightings:
    """What several plays of a scenario showed. A place differs when no play of one program showed what a play of the
    other did: what depends on chance is no difference."""

    def __init__(self):
        self.plays = []

    def add(self, outcome):
        self.plays.append(outcome)

    @property
    def is_steady(self):
        """Whether each program showed the same in all plays."""
        first = self.plays[0]
        return not any(differences(first[name], play[name]) for play in self.plays[1:] for name in first)

    def differences(self):
        sides = {name: [play[name] for play in self.plays] for name in ("haproxy", "ballast")}
        common = None
        for one in sides["haproxy"]:
            for other in sides["ballast"]:
                found = differences(one, other)
                places = {difference.place for difference in found}
                common = places if common is None else common & places
        last = self.plays[-1]
        found = differences(last["haproxy"], last["ballast"])
        if [difference.place for difference in found] == ["start"]:
            # Why it is refused tells which difference this is.
            said = {name: [last[name]["start"], *last[name].get(SAID, [])[:1]] for name in sides}
            found = [Difference("start", shown(said["haproxy"]), shown(said["ballast"]))]
        return [difference for difference in found if difference.place in (common or set())]
