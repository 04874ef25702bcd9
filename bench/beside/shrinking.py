"""Makes a scenario that shows a difference as small as it can be. It knows nothing of scenarios but that they are plain data."""

import copy
import json
import re

# Without these lines a scenario waits for ever, or is another.
KEPT = re.compile(r"(mode|timeout|bind|server) ")
ROUNDS_MAX = 24
CANDIDATES_MAX = 60


def removals(value, path=()):
    """The paths of everything that can be left out."""
    if isinstance(value, dict):
        yield from ((*path, key) for key in value if may_go(key, path))
        for key, item in value.items():
            yield from removals(item, (*path, key))
    elif isinstance(value, list):
        # Of a step or a field only what is within can be left out.
        for number, item in enumerate(value):
            if not is_atom(path) and not (isinstance(item, str) and KEPT.match(item)):
                yield (*path, number)
            if isinstance(item, (dict, list)):
                yield from removals(item, (*path, number))


def may_go(key, path):
    """Whether a key of a scenario, a server or a request can be left out."""
    if path == ():
        return key in ("ask", "files", "together", "global")
    return key in ("body", "connections", "connect_protocol", "refuses") or path[-1] == "files"


def is_atom(path):
    """Whether the list at a path is one thing: a step, or a field of a message."""
    if len(path) >= 2 and path[-2] in ("steps", "fields", "raw"):
        return True
    # answers: a list of answers, each a list of steps; the fields of a step are its third element.
    if len(path) >= 3 and path[-3] in ("answers", "connections"):
        return True
    return len(path) >= 5 and path[-5] in ("answers", "connections") and path[-2] == 2


def shorter_texts(value, path=()):
    """Texts that can be shortened, with what to write instead: rules lose words, bodies lose length."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from shorter_texts(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from shorter_texts(item, (*path, number))
    elif isinstance(value, str):
        if "lines" in path or "defaults" in path:
            words = value.split(" ")
            if "if" in words[1:]:
                yield path, " ".join(words[: words.index("if")])
            for number in range(3 if KEPT.match(value) else 1, len(words)):
                yield path, " ".join(words[:number] + words[number + 1 :])
        elif len(value) > 40:
            yield path, value[: len(value) // 2]


def without(scenario, paths):
    """A copy without what is at the paths, of which none is within another."""
    smaller = copy.deepcopy(scenario)
    for path in sorted(paths, key=order, reverse=True):
        place = smaller
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]
    return smaller


def order(path):
    return [(0, key, "") if isinstance(key, int) else (1, 0, key) for key in path]


def changed(scenario, path, text):
    smaller = copy.deepcopy(scenario)
    place = smaller
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = text
    return smaller


def outermost(paths):
    kept = []
    for path in sorted(paths, key=len):
        if not any(path[: len(outer)] == outer for outer in kept):
            kept.append(path)
    return kept


async def shrunk(scenario, still_differs):
    """The smallest scenario for which `still_differs(candidates)` holds; it judges many candidates at once."""
    # What a grammar put into two places is one object: what goes from one place would go from the other.
    scenario = json.loads(json.dumps(scenario))
    scenario = await without_parts(scenario, still_differs)
    for _ in range(ROUNDS_MAX):
        texts = list(shorter_texts(scenario))[: 2 * CANDIDATES_MAX]
        candidates = [changed(scenario, path, text) for path, text in texts]
        good = [smaller for smaller, holds in zip(candidates, await still_differs(candidates)) if holds]
        if not good:
            break
        scenario = min(good, key=lambda smaller: len(repr(smaller)))
    return await without_parts(scenario, still_differs)


async def without_parts(scenario, still_differs):
    for _ in range(ROUNDS_MAX):
        paths = list(removals(scenario))
        good = []
        # What matters most is tried first: whole sections, clients and lines before what is in them.
        for at in range(0, len(paths), CANDIDATES_MAX):
            part = paths[at : at + CANDIDATES_MAX]
            verdicts = await still_differs([without(scenario, [path]) for path in part])
            good += [path for path, holds in zip(part, verdicts) if holds]
            if good:
                break
        if not good:
            return scenario
        scenario = await most_of(scenario, outermost(good), still_differs)
    return scenario


async def most_of(scenario, good, still_differs):
    """Leaves out as many as go together: all, else a half, and so on down to one."""
    while len(good) > 1:
        halves = [good, good[: len(good) // 2], good[len(good) // 2 :]]
        candidates = [without(scenario, paths) for paths in halves]
        verdicts = await still_differs(candidates)
        for candidate, holds in zip(candidates, verdicts):
            if holds:
                return candidate
        good = good[: len(good) // 2]
    return without(scenario, good)
