"""The flags of `sanderling events consume`, and what each group of them makes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from sanderling.cli.alerting import NOBODY, Alerting
from sanderling.cli.command_error import CommandError
from sanderling.cli.events.place import (
    OWN_BODIES,
    OWN_LETTERS,
    OWN_ROWS,
    EventsDatabase,
    EventsFolder,
    EventsObjects,
    EventsQueue,
)
from sanderling.cli.flags import SETTING
from sanderling.cli.serving import UNSERVED, Serving
from sanderling.events.analysis.analyse import Analyser
from sanderling.events.analysis.aspects import load_aspects
from sanderling.events.analysis.intent import load_intents
from sanderling.events.analysis.lexicon import LexiconModel, load_lexicon
from sanderling.events.analysis.listing import WordListError
from sanderling.events.analysis.onnx import OnnxModel, PhobertTokens
from sanderling.events.analysis.sentiment import ModelError, SentimentModel
from sanderling.events.batches import USUAL_LIMITS, BatchLimits
from sanderling.events.rules import ConsumeRules
from sanderling.stores.queue import MOST_PREFETCH

VOCABULARY, CODES = "vocab.txt", "bpe.codes"
MB = 1 << 20
METRICS_PORT = 9090  # where dashboards of such services look


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeWork:
    """How much at once."""

    batches: Annotated[int, Parameter(validator=Number(gte=1, lte=1000))] = 5
    """Batches that are processed at once."""

    prefetch: Annotated[int, Parameter(validator=Number(gte=1, lte=1000)), SETTING] = 1
    """Messages that a server hands out for each of these in advance."""

    pool: Annotated[int | None, Parameter(validator=Number(gte=1, lte=1000)), SETTING] = None
    """Connections to PostgreSQL that write; by default one for each batch, and one more."""

    read_pool: Annotated[int, Parameter(validator=Number(gte=1, lte=1000)), SETTING] = 4
    """Connections to PostgreSQL for those who look."""

    max_object: Annotated[int, Parameter(validator=Number(gte=1, lte=4096)), SETTING] = 32
    """Megabytes that an object may have as it is stored."""

    max_batch: Annotated[int, Parameter(validator=Number(gte=1, lte=4096)), SETTING] = 32
    """Megabytes that it may have once it is unpacked."""

    max_comments: Annotated[int, Parameter(validator=Number(gte=1, lte=1_000_000)), SETTING] = USUAL_LIMITS.comments
    """Comments that an item may have; one with more is an error."""

    max_rows: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000_000)), SETTING] = USUAL_LIMITS.rows
    """Rows that a batch may become: posts, comments and errors; beyond that its largest items are errors."""

    max_memory: Annotated[int, Parameter(validator=Number(gte=1, lte=1_048_576)), SETTING] = 256
    """Megabytes that all batches in hand may take, about; beyond that they wait for each other."""

    tries: Annotated[int, Parameter(validator=Number(gte=0, lte=1000)), SETTING] = 10
    """How often a message comes back whose batch is not there, or not complete, before it is given up."""

    def rules(self, bodies: EventsObjects, letters: EventsQueue) -> ConsumeRules:
        """The rules that go with the flags."""
        return ConsumeRules(
            batches=self.batches,
            bucket=bodies.bucket,
            exchange=letters.exchange,
            most_raw=self.max_object * MB,
            most=self.max_batch * MB,
            limits=BatchLimits(comments=self.max_comments, rows=self.max_rows),
            memory=self.max_memory * MB,
            most_tries=self.tries,
        )

    @property
    def handed_out(self) -> int:
        """Messages that a server hands to us before any is done. Raises CommandError."""
        number = self.batches * self.prefetch
        if number > MOST_PREFETCH:
            found = f"{self.prefetch:,} for each of {self.batches:,} batches are {number:,} messages"
            raise CommandError(f"prefetch: {found}, expected at most {MOST_PREFETCH:,}", code=2)
        return number

    @property
    def writers(self) -> int:
        """Connections that write."""
        return self.batches + 1 if self.pool is None else self.pool


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisFlags:
    """What posts are read with."""

    model: Annotated[Path | None, SETTING] = None
    """An ONNX model of sentiment, with vocab.txt and, if it has them, bpe.codes beside it; by default a lexicon."""

    lexicon: Annotated[Path | None, SETTING] = None
    """A lexicon instead of ours."""

    intents: Annotated[Path | None, SETTING] = None
    """What tells one intent from the other, instead of ours."""

    aspects: Annotated[Path | None, SETTING] = None
    """Which words belong to which aspect, instead of ours."""

    def analyser(self) -> Analyser:
        """What reads posts. Raises CommandError."""
        if self.model is not None and self.lexicon is not None:
            raise CommandError("model and lexicon: expected one of them", code=2)
        try:
            return Analyser(self._model(), load_intents(self.intents), load_aspects(self.aspects))
        except (WordListError, ModelError) as error:
            raise CommandError(str(error), code=2) from None

    def _model(self) -> SentimentModel:
        if self.model is None:
            return LexiconModel(load_lexicon(self.lexicon))
        codes = self.model.with_name(CODES)
        return OnnxModel(self.model, PhobertTokens(self.model.with_name(VOCABULARY), codes if codes.exists() else None))


@dataclass(frozen=True, slots=True)
class ConsumeFlags:
    """All flags of consuming, but for those that watch it and those of the analysis."""

    folder: EventsFolder = field(default_factory=EventsFolder)
    rows: EventsDatabase = OWN_ROWS
    bodies: EventsObjects = OWN_BODIES
    letters: EventsQueue = OWN_LETTERS
    work: ConsumeWork = field(default_factory=ConsumeWork)
    serving: Serving = UNSERVED
    alerting: Alerting = NOBODY
    metrics_port: int | None = METRICS_PORT  # where metrics are, if nobody asked for them and it is free; None: nowhere
