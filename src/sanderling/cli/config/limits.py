"""What hosts share, and what requests cost: the tables below [limits] of sanderling.toml; EXAMPLE has all of them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sanderling.cli.config.lines import TomlLines
from sanderling.cli.config.settings import FlagSetting, found_words
from sanderling.limit import LimiterRules, PaceRules, Shared
from sanderling.limit.sharing import SCOPES, Sharing

EXAMPLE = """\
[limits.credential.maps]            # one key, with which several hosts are called
hosts = ["api.example.org", "*.tiles.example.org"]
rps = 5

[limits.domain."example.org"]       # it and all below it; "*" is each domain that somebody registered
rps = 10

[limits.ip."203.0.113.7"]           # all that live there; "*" is each address
rps = 20
refusals = "host"                   # a 429 is the host's own, and not that of all who share this

[limits.cost]                       # for how many requests one counts
"api.example.org/search" = 2
"""
COST = "cost"
SETTINGS = {
    "rps": FlagSetting("rps", "float", ..., ((">", 0), ("<=", 1_000_000))),
    "hosts": FlagSetting("hosts", "text", ..., many=True),
    "refusals": FlagSetting("refusals", "choice", None, choices=("shared", "host")),
}
OF_KIND = {"credential": ("hosts", "rps", "refusals"), "domain": ("rps", "refusals"), "ip": ("rps", "refusals")}
# Whose a refusal is, where nothing says so. Who lives at one address may have nothing else in common.
REFUSALS = {"credential": "shared", "domain": "shared", "ip": "host"}

Wrong = Callable[[int, str], None]


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """What the file says, for a limiter."""

    shared: tuple[Shared, ...] = ()
    paces: Mapping[str, PaceRules] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)

    def applied(self, rules: LimiterRules) -> LimiterRules:
        """The same rules, with these limits."""
        return replace(rules, shared=self.shared, scopes={**rules.scopes, **self.paces}, costs=self.costs)


def as_tables(limits: SharedLimits) -> dict[str, dict[str, object]]:
    """The limits as the tables of a file, with what holds by default."""
    tables: dict[str, dict[str, object]] = {}
    for each in limits.shared:
        said: dict[str, object] = {"hosts": list(each.hosts)} if each.hosts else {}
        said["rps"] = limits.paces[f"{each.kind}/{each.name}"].max_rps
        said["refusals"] = "shared" if each.refusals else "host"
        tables[f'limits.{each.kind}."{each.name}"'] = said
    return tables | ({"limits.cost": dict(limits.costs)} if limits.costs else {})


def read(content: object, written: str, lines: TomlLines, wrong: Wrong) -> SharedLimits:
    """The limits of a file; `wrong` is told, with its line, of all that is not as it should be."""
    if not isinstance(content, Mapping):
        wrong(lines[(written,)], f"limits: found {found_words(content)}, expected tables like [limits.credential.NAME]")
        return SharedLimits()
    tables: dict[str, Mapping[str, object]] = {}
    for kind, inside in content.items():
        line = lines.first_in((written, kind))
        if kind not in (*SCOPES, COST):
            wrong(line, f"[limits] has no table {kind[:60]}; expected one of {', '.join((*SCOPES, COST))}")
        elif not isinstance(inside, Mapping):
            wrong(line, f"[limits] {kind}: found {found_words(inside)}, expected a table")
        else:
            tables[kind] = inside
    costs = dict(_costs(tables.pop(COST, {}), (written, COST), lines, wrong))
    quotas = [
        found
        for kind, inside in tables.items()
        for name, settings in inside.items()
        if (found := _shared(kind, name, settings, (written, kind, name), lines, wrong)) is not None
    ]
    paces = {f"{each.kind}/{each.name}": PaceRules.contract(rps) for each, rps in quotas}
    return SharedLimits(tuple(each for each, _ in quotas), paces, costs)


def _shared(
    kind: str, name: str, settings: object, place: tuple[str, ...], lines: TomlLines, wrong: Wrong
) -> tuple[Shared, float] | None:
    """One quota, and its requests a second; None if something is wrong with it."""
    title = f'[limits.{kind}."{name[:60]}"]'
    if not isinstance(settings, Mapping):
        wrong(lines[place], f"{title}: found {found_words(settings)}, expected a table with {', '.join(OF_KIND[kind])}")
        return None
    if problems := list(_problems(kind, settings)):
        for key, words in problems:
            wrong(lines[(*place, key)] if key else lines.first_in(place), f"{title} {words}")
        return None
    refusals = settings.get("refusals", REFUSALS[kind]) == "shared"
    try:
        return Shared(kind, name, tuple(settings.get("hosts", ())), refusals=refusals), float(settings["rps"])
    except ValueError as error:
        wrong(lines[place], f"{title}: {error}")
        return None


def _problems(kind: str, settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """The key, or nothing, and what is wrong there."""
    allowed = OF_KIND[kind]
    for key, value in settings.items():
        if key in allowed:
            if words := SETTINGS[key].wrong(value):
                yield key, f"{key}: {words}"
        elif isinstance(value, Mapping):
            yield key, f'has no table {key[:60]}; a name with dots is in quotes, as in [limits.{kind}."example.org"]'
            return
        else:
            near = get_close_matches(key, allowed, 1)
            hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(allowed)}"
            yield key, f"has no setting {key[:60]}; {hint}"
    for key in allowed:
        if SETTINGS[key].default is ... and key not in settings:
            yield "", f"has no {key}; expected {SETTINGS[key].expected}"


def _costs(
    inside: Mapping[str, object], place: tuple[str, ...], lines: TomlLines, wrong: Wrong
) -> Iterator[tuple[str, float]]:
    for pattern, cost in inside.items():
        line = lines[(*place, pattern)]
        if isinstance(cost, bool) or not isinstance(cost, int | float):
            wrong(line, f"[limits.cost] {pattern[:80]}: found {found_words(cost)}, expected a number")
            continue
        try:
            Sharing((), {pattern: float(cost)}, 1)
        except ValueError as error:
            wrong(line, f"[limits.cost] {pattern[:80]}: {error}")
        else:
            yield pattern, float(cost)
