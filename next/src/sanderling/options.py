"""Options: each is one field of a class, from which its flag, variable, TOML key, help, keyword and plan follow.

    class PagesOptions(RequestOptions, table="pages", title="What is crawled"):
        depth: int = option(16, "Links to follow from the first addresses at most.", low=0, high=1000)

This is `--depth`, SANDERLING_PAGES_DEPTH, `depth` in [pages] of sanderling.toml, `PagesOptions(depth=3)`, and
`options.depth` in the code. What a base class declares may stand in its own table too: SANDERLING_RPS, or `rps` at the
top level. A flag counts more than a variable, a variable more than the file, the file more than the default.

A field that is an `Options` class itself, or a `dict[str, …]` of one, is a table of the file and has no flag.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from sanderling.forms import OTHER, SIMPLE, Form
from sanderling.redact import Secret, redact

PREFIX = "SANDERLING"
REQUIRED = msgspec.UNSET
Document = Mapping[str, Any]  # what a TOML file says


class OptionError(ValueError):
    """An option that does not exist or has a wrong value. The message names it and says what to type."""


def option(
    default: object,
    help: str,  # noqa: A002 - the word that people type and read
    *,
    low: float | None = None,
    high: float | None = None,
    plan: bool = False,
    seed: str = "",
    variable: str = "",
    argument: str = "",
) -> Any:  # noqa: ANN401 - the type is the field's
    """Declare an option. `plan`: a crawl stores it, and another value is another crawl.

    `seed` and `variable` are names that a seed gives to the flag and to the variable. `argument` names what is typed
    without a flag, as in `URL`.
    """
    return partial(
        Option, default, help, low=low, high=high, plan=plan, seed=seed, variable=variable, argument=argument
    )


class Option:
    """One option of a class, with all that follows from its field."""

    def __init__(
        self,
        default: object,
        help: str,  # noqa: A002 - as above
        *,
        low: float | None,
        high: float | None,
        plan: bool,
        seed: str,
        variable: str,
        argument: str,
        name: str,
        hint: Any,  # noqa: ANN401 - a type
        table: str | None,
        title: str,
    ) -> None:
        self.name = name
        self.key = name.rstrip("_").replace("_", "-")
        self.default = default
        self.help = help
        self.plan = plan
        self.flags = tuple(filter(None, (self.key, seed))) if not argument else ()
        self.argument = argument
        self.table = None if argument else table  # where it is declared; None: it can only be typed
        self.title = title  # of its group in --help
        self._variable = variable
        self.optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
        hint = next(each for each in get_args(hint) if each is not NoneType) if self.optional else hint
        self.shape = get_origin(hint) if get_origin(hint) in (tuple, dict) else None  # repeatable, or NAME=VALUE
        hint = hint if self.shape is None else get_args(hint)[-1 if self.shape is dict else 0]
        self.item, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)  # the type of one value
        self.choices = get_args(self.item) if get_origin(self.item) is Literal else ()
        self.is_table = isinstance(self.item, type) and issubclass(self.item, Options)
        # What msgspec checks, if anything; infinity and NaN are refused.
        self._checked = self.item if self.choices or self.item in SIMPLE else None
        if self.item in (int, float):
            most = 2**63 - 1 if self.item is int else 1e300
            bounds = msgspec.Meta(ge=-most if low is None else low, le=most if high is None else high)
            self._checked = Annotated[self.item, bounds]
        words = [str(choice) for choice in self.choices]
        plain = Form(str, f"one of {', '.join(words)}", "|".join(words)) if words else Form(str, "a table", "")
        written = next((mark for mark in marks if isinstance(mark, Form)), OTHER.get(self.item))
        self.form = written or SIMPLE.get(self.item, plain)
        self._read_text = written and written.read
        shown = [None if limit is None else self.show(limit) for limit in (low, high)]
        range_ = {(True, True): " from {} to {}", (True, False): " of at least {}", (False, True): " of at most {1}"}
        self.expected = self.form.expected + range_.get((low is not None, high is not None), "").format(*shown)
        self.metavar = f"NAME={self.form.metavar}" if self.shape is dict else self.form.metavar
        if self.is_table:
            self.flags = ()

    def __repr__(self) -> str:
        return f"<Option {self.typed_as}>"

    @property
    def typed_as(self) -> str:
        """What people type: the flag, or the argument's name."""
        return self.argument or f"--{self.key}"

    def show(self, value: object) -> str:
        """A value as people write it, without passwords in it."""
        match value:
            case None:
                return ""
            case bool():
                return str(value).lower()
            case tuple():
                return " ".join(map(self.show, value))
            case Mapping():
                return " ".join(f"{name}={self.show(each)}" for name, each in value.items())
        return self.form.show(value)

    def tables(self, table: str | None) -> tuple[str, ...]:
        """The tables of the file that hold it for a command of `table`, the one that counts most first."""
        return () if self.table is None or table is None else tuple(dict.fromkeys((table, self.table)))

    def variables(self, table: str | None) -> list[tuple[str, ...]]:
        """The variables that set it, those that count most first; names in one tuple stand for the same."""
        own = self.name.rstrip("_")
        tables = () if self.is_table else self.tables(table)
        names = ["_".join(filter(None, (PREFIX, each, own))).upper().replace("-", "_") for each in tables]
        aliases = (self._variable,) if self._variable else ()
        return [(*names[:1], *aliases), *((name,) for name in names[1:])]

    def read(self, raw: object, origin: str, *, typed: bool = False) -> object:
        """The checked value of what stands at `origin`; `typed`: numbers are texts there. Raises OptionError."""
        if raw is None and self.optional:
            return None
        if self.shape is None:
            return self._read_one(raw, origin, typed=typed)
        if self.shape is tuple and isinstance(raw, list | tuple):
            return tuple([self._read_one(each, origin, typed=typed) for each in raw])
        pairs = _pairs(raw, origin) if self.shape is dict and isinstance(raw, list) else raw
        if self.shape is dict and isinstance(pairs, Mapping):
            inside = origin[:-1] + '."{}"]' if origin.endswith("]") else origin + '["{}"]'
            return {name: self._read_one(each, inside.format(name), typed=typed) for name, each in pairs.items()}
        several = "a list, each " if self.shape is tuple else "" if self.is_table else "NAME=VALUE, each "
        raise OptionError(f"{origin}: found {self._found(raw)}, expected {several}{self.expected}")

    def _read_one(self, raw: object, origin: str, *, typed: bool) -> object:
        try:
            if isinstance(raw, str) and self._read_text:
                raw, typed = self._read_text(raw), False
            if self._checked is not None:
                return msgspec.convert(raw, self._checked, strict=not typed)
            if self.is_table and isinstance(raw, Mapping):
                return self.item.from_table(raw, origin)
            if isinstance(raw, self.item):
                return raw
            raise ValueError  # noqa: TRY301 - said below
        except OptionError:  # of a table in this one
            raise
        except ValueError as error:  # msgspec's is one
            said = "" if isinstance(error, msgspec.ValidationError) else str(error)
            raise OptionError(f"{origin}: {said or f'found {self._found(raw)}, expected {self.expected}'}") from None

    def _found(self, raw: object) -> str:
        """What was found instead, without a secret."""
        match raw:
            case str():
                return "a text" if self.item is Secret else repr(redact(raw)[:60])
            case bool() | int() | float():
                return str(raw).lower()[:40]
            case list() | tuple():
                return f"[{', '.join(map(self._found, raw[:5]))}]"
        return "a table" if isinstance(raw, Mapping) else f"a value of type {type(raw).__name__}"


def _pairs(texts: Iterable[object], origin: str) -> dict[str, str]:
    pairs = [str(text).partition("=") for text in texts]
    if wrong := [name for name, equals, _ in pairs if not (name and equals)]:
        raise OptionError(f"{origin}: found {wrong[0][:60]!r}, expected NAME=VALUE")
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise OptionError(f"{origin}: a name is given twice; give it once")
    return {name: value for name, _, value in pairs}


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Options:
    """A group of options. A subclass adds its own, and may name the `table` in which they are set."""

    table: ClassVar[str | None] = None  # None: they can only be typed; "": the top level of the file
    fields: ClassVar[Mapping[str, Option]] = {}  # a subclass's own first

    def __init_subclass__(cls, table: str | None = None, title: str = "") -> None:
        if table is not None:
            cls.table = table
        hints = get_type_hints(cls, include_extras=True)
        inherited = {name: each for base in cls.__bases__ for name, each in getattr(base, "fields", {}).items()}
        own: dict[str, Option] = {}
        for name, declared in vars(cls).items():
            if isinstance(declared, partial):
                # Declared anew, with another default say, it stays in the table where people know it.
                where = inherited[name].table if name in inherited else cls.table
                own[name] = declared(name=name, hint=hints[name], table=where, title=title)
        cls.fields = own | {name: each for name, each in inherited.items() if name not in own}

    def __init__(self, **values: object) -> None:
        for name in values:
            if name not in self.fields:
                raise OptionError(f"there is no option {name}{nearest(name, self.fields)}")
        for name, each in self.fields.items():
            if name not in values and each.default is REQUIRED:
                raise OptionError(f"{each.typed_as} is missing; expected {each.expected}")
            self.__dict__[name] = each.read(values[name], name) if name in values else each.default

    @classmethod
    def from_table(cls, content: Document, origin: str) -> Self:
        """The options of one table of a file; `origin` names it in errors."""
        found = match_keys(content, cls.fields.values(), origin)
        values = {name: cls.fields[name].read(raw, f"{origin} {key}") for name, (key, raw) in found.items()}
        try:
            return cls(**values)
        except OptionError as error:  # something is missing, or two values do not go together
            raise OptionError(f"{origin}: {error}") from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"options do not change: {name}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment] # a field may be a dict

    def __repr__(self) -> str:
        changed = [f"{name}={value!r}" for name, value in vars(self).items() if value != self.fields[name].default]
        return f"{type(self).__name__}({', '.join(changed)})"

    def plan(self) -> dict[str, Any]:
        """What a crawl stores: the options that make it this crawl, as plain values."""
        planned = [name for name, each in self.fields.items() if each.plan]
        return {name: msgspec.to_builtins(vars(self)[name], enc_hook=str) for name in planned}

    def secrets(self) -> Iterator[Secret]:
        """All secrets in it and in its tables."""
        values = list(vars(self).values())
        for value in values:  # which grows on the way
            match value:
                case Secret():
                    yield value
                case Options():
                    values.extend(vars(value).values())
                case tuple():
                    values.extend(value)
                case dict():
                    values.extend(value.values())


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about a wrong name: the right one that is most alike, if any is."""
    from difflib import get_close_matches  # noqa: PLC0415 - 6 ms, and only for who typed a wrong name

    close = get_close_matches(name[:100], list(names), 1)
    return f"; did you mean {close[0]}?" if close else ""


def match_keys(content: Document, options: Iterable[Option], origin: str) -> dict[str, tuple[str, object]]:
    """What a table of the file sets: for each option, by name, the key as it is written there, and the value."""
    keys = {each.key: each for each in options if not each.argument}
    found: dict[str, tuple[str, object]] = {}
    for key, raw in content.items():
        each = keys.get(key.replace("_", "-"))
        if each is None:
            raise OptionError(f"{origin} has no key {key[:60]}{nearest(key.replace('_', '-'), keys)}")
        if each.name in found:
            raise OptionError(f"{origin} has {found[each.name][0]} and {key}, which are the same; give one of them")
        found[each.name] = key, raw
    return found
