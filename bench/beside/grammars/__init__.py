"""The grammars: each makes a scenario, which is plain data, from random numbers."""

from grammars import configurations, crowds, exchanges, matching, prompts, runtime, sealed, tables, tcp

# How often each is asked.
GRAMMARS = {
    "exchanges": (exchanges.generate, 5),
    "configurations": (configurations.generate, 5),
    "tables": (tables.generate, 2),
    "matching": (matching.generate, 2),
    "runtime": (runtime.generate, 2),
    "crowds": (crowds.generate, 1),
    "prompts": (prompts.generate, 2),
    "sealed": (sealed.generate, 3),
    "tcp": (tcp.generate, 2),
}


def generate(random, only=None):
    """One scenario of any grammar, or of the one that is named."""
    names = [only] if only else list(GRAMMARS)
    name = random.choices(names, [GRAMMARS[name][1] for name in names])[0]
    scenario = GRAMMARS[name][0](random)
    scenario.setdefault("name", name)
    return scenario
