"""Which services are configured, and what became of asking each: all at once, and none for longer than PATIENCE."""

import asyncio
import importlib
import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast
from urllib.parse import quote, unquote

from sanderling.cli.config.file import Configuration, EffectiveValue
from sanderling.cli.config.settings import FlagSetting, Table, known
from sanderling.cli.doctor.findings import FAIL, UNSET, CheckError, CheckFinding, aside
from sanderling.extras import EXTRAS, install
from sanderling.redact import is_secret_parameter, redact_url
from sanderling.words import printable

PATIENCE = 5.0  # seconds
AWAY = "is it up, and is that its address? Does something between here and there drop what is sent?"
SQLITE = "sqlite"

# What holds a URL of a service, and what is used where nobody names one: a file within the folder of the command.
SETTINGS: dict[tuple[str, str], str] = {
    ("sequence", "queue"): "instance_store.db",
    ("sequence", "rows"): "rows.db",
    ("sequence", "raw"): "",
    ("sequence", "prometheus"): "",
    ("polling", "database"): "polling.db",
    ("polling", "queue"): "",
    ("events", "database"): "events.db",
    ("events", "objects"): "objects",
    ("events", "queue"): "analytics.data.collected.db",
    ("repos", "redis-address"): "progress.db",
    ("repos", "directory"): "directory.db",
    ("repos", "to"): "",
}
NAMED_BY = {"queue": "queue-name", "objects": "bucket"}  # what else says where it is there
# By scheme: the module and the function in it that asks such a service.
CHECKS = {
    **dict.fromkeys(("postgresql", "postgres"), ("postgres", "check_postgres")),
    **dict.fromkeys(("amqp", "amqps"), ("rabbitmq", "check_rabbitmq")),
    **dict.fromkeys(("redis", "rediss", "unix"), ("stores", "check_redis")),
    **dict.fromkeys(("s3", "s3+http", "s3+https"), ("stores", "check_s3")),
    **dict.fromkeys(("clickhouse", "clickhouses"), ("stores", "check_clickhouse")),
    **dict.fromkeys(("http", "https"), ("stores", "check_prometheus")),
    **dict.fromkeys((SQLITE, "file", "chdb", "parquet"), ("files", "check_file")),
}
FLEET = {
    ("fleet", "server"): ("fleet", "check_fleet_server"),
    ("fleet", "objects"): ("fleet", "check_fleet_objects"),
}
EXPECTED = (
    "expected postgresql://, amqp://, redis://, s3+http://, clickhouse://, http:// (a Prometheus), chdb: or sqlite:"
)

Say = Callable[[CheckFinding], object]
Check = Callable[["Service", Say], Awaitable[None]]
BlockingCheck = Callable[["Service"], list[CheckFinding]]  # which is called in a thread of its own


class Service(NamedTuple):
    """What is to be asked. The URL may hold a password, so it is never shown as it is."""

    what: str
    url: str
    name: str = ""  # of the queue, or of the bucket, if it is known
    setting: tuple[str, str] = ("", "")  # where it is from; empty if somebody asked for it
    workers: int = 0  # that a fleet is to have, if that is known

    @property
    def kind(self) -> str:
        """The scheme of its URL."""
        return self.url.partition(":")[0].lower()

    @property
    def path(self) -> Path:
        """Where it is, if it is a file or a folder."""
        return Path(self.url.partition(":")[2].removeprefix("//"))


def services(configuration: Configuration) -> Iterator[Service | CheckFinding]:
    """All that is configured, and for what is not, what is used instead. Raises CommandError."""
    told: dict[tuple[str, str], Service] = {}
    for (group, key), usual in SETTINGS.items():
        found = dict.fromkeys(_configured(configuration, group, key))
        for value, name in found:
            service = Service(f"{group} {key}", _url(key, value), name, (group, key))
            before = told.get((service.url, name))
            told[service.url, name] = service if before is None else _together(before, service)
        if not found:
            yield from _embedded(configuration, group, key, usual)
    yield from told.values()


def _configured(configuration: Configuration, group: str, key: str) -> Iterator[tuple[str, str]]:
    """What commands of a group were told, and under which name they look there."""
    for command, settings in known().commands.items():
        setting = settings.get(key)
        if command[0] != group or setting is None:
            continue
        found = configuration.found(command, key, setting.variables)
        if found is not None and isinstance(found.value, str) and found.value:
            yield found.value, _named(configuration, command, settings, NAMED_BY.get(key, ""))


def _named(configuration: Configuration, command: Table, settings: Mapping[str, FlagSetting], key: str) -> str:
    if key not in settings:
        return ""
    value: EffectiveValue = configuration.effective(command, settings[key])
    return str(value.value or "")


def _url(key: str, value: str) -> str:
    """A URL, whatever the flag takes besides."""
    if key == "redis-address" and "://" not in value:
        return f"redis://{value}/0"
    if key == "objects" and value.startswith(("http:", "https:")):
        return f"s3+{value}"
    return value


def _together(one: Service, other: Service) -> Service:
    """Several that are kept in one place; whatever there is to know about events is looked at."""
    if one.what == other.what:
        return one
    setting = other.setting if other.setting[0] == "events" else one.setting
    return one._replace(what=f"{one.what}, {other.what}", setting=setting)


def _embedded(configuration: Configuration, group: str, key: str, usual: str) -> Iterator[Service | CheckFinding]:
    """What stands in for a service that nobody configured: the file, if there is one already."""
    what = f"{group} {key}"
    if not usual:
        yield from () if key == "to" else (CheckFinding(what, UNSET, "nothing is asked there"),)
        return
    folder = _folder(configuration, group)
    if folder is not None and (folder / usual).exists():
        scheme = "file" if key == "objects" else SQLITE
        yield Service(what, f"{scheme}:{folder / usual}", setting=(group, key))
    else:
        yield CheckFinding(what, UNSET, f"{usual} in its folder is used, which is not there yet")


def _folder(configuration: Configuration, group: str) -> Path | None:
    for command, settings in known().commands.items():
        setting = settings.get("out")
        if command[0] == group and setting is not None:
            return Path(str(configuration.effective(command, setting).value)).expanduser()
    return None


def asked_for(urls: Iterable[str]) -> Iterator[Service]:
    """Services that somebody wants to have checked besides; an S3 may name its bucket behind the host."""
    for number, url in enumerate(urls, 1):
        name = ""
        if url.startswith(("s3+http", "s3:")) and "://" in url:
            # By hand, not with urlsplit: a password may hold anything.
            scheme, _, rest = url.partition("://")
            host, _, name = rest.rpartition("@")[2].partition("/")
            login = rest.rpartition("@")[0]
            url = f"{scheme}://{f'{login}@' if login else ''}{host}"  # noqa: PLW2901 - without the bucket
        yield Service(f"--check {number}", url, name.strip("/"))


def of_fleet(servers: Sequence[str], objects: str | None, workers: int) -> Iterator[Service]:
    """What the machines of a fleet share."""
    for number, url in enumerate(servers, 1):
        yield Service("fleet" if len(servers) == 1 else f"fleet {number}", url, "", ("fleet", "server"), workers)
    if objects is not None:
        yield Service("fleet objects", objects, "", ("fleet", "objects"))


async def checked(service: Service) -> list[CheckFinding]:
    """What was found about a service."""
    found: list[CheckFinding] = []
    try:
        async with asyncio.timeout(PATIENCE):
            check = _check(service)
            if inspect.iscoroutinefunction(check):
                await check(service, found.append)
            else:
                found += await aside(partial(cast("BlockingCheck", check), service))
    except TimeoutError:
        found.append(
            CheckFinding(service.what, FAIL, f"{redact_url(service.url)} gave no answer within {PATIENCE:.0f} s", AWAY)
        )
    except CheckError as error:
        found.append(CheckFinding(service.what, FAIL, str(error), error.advice))
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        found.append(CheckFinding(service.what, FAIL, f"{library} is not installed", install(library)))
    return [_safe(each, service.url) for each in found]


def _check(service: Service) -> Check | BlockingCheck:
    found = FLEET.get(service.setting) or CHECKS.get(service.kind)
    if found is None:
        # Not a word of it: what is no URL may be a password.
        raise CheckError("that is no URL of a service we know", EXPECTED)
    module, name = found
    check: Check | BlockingCheck = getattr(importlib.import_module(f"sanderling.cli.doctor.{module}"), name)
    return check


def _safe(finding: CheckFinding, url: str) -> CheckFinding:
    """The same without the password, should somebody have quoted it, and without what could harm a terminal."""
    found, advice = (_without(text, secrets_in(url)) for text in (finding.found, finding.advice))
    return CheckFinding(finding.what, finding.state, printable(found), printable(advice))


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def secrets_in(url: str) -> list[str]:
    """The passwords in a URL, in every spelling that somebody may quote them in; the longest first."""
    login = url.partition("://")[2].rpartition("@")[0]
    password = login.partition(":")[2]
    several = {password, unquote(password), quote(unquote(password), safe="")}
    options = (each.partition("=") for each in url.partition("?")[2].split("&"))
    several |= {form for name, _, value in options if is_secret_parameter(name) for form in (value, unquote(value))}
    return sorted((each for each in several if len(each) > 2), key=len, reverse=True)
