"""What people write in a simulated market: in several ways, in the mood that is listed, and about nobody."""

import re
from random import Random

import pytest

from sanderling.events.analysis.preprocess import has_phone
from sanderling.worlds.chance import Weights
from sanderling.worlds.social_day import ANGRY, CALM
from sanderling.worlds.social_hostile import HALF
from sanderling.worlds.social_items import MESSAGES, message_of, stamp
from sanderling.worlds.social_market import BRANDS, Brand, without_marks
from sanderling.worlds.social_people import POPULATION, population
from sanderling.worlds.social_texts import FORMS, PHRASES, REGISTERS, REMARKED, SPOKEN, Register, Texts, Words, _banks
from sanderling.worlds.social_truth import Mood, PostIntent, PostSentiment

MOODS = tuple(_banks()[0])
SEU = Brand.of("Sếu Đỏ-7")
PRAISE = Mood(PostIntent.DISCUSSION, PostSentiment.POSITIVE)
SPAM = Mood(PostIntent.SPAM, PostSentiment.NEUTRAL)
ONLY = {register: Weights({register: 1.0}) for register in Register}


def written(
    mood: Mood, registers: Weights[Register] = REGISTERS, platform: str = "tiktok", count: int = 60
) -> list[Words]:
    texts, chance = Texts(registers), Random(1)
    return [texts.words(mood, SEU, platform, chance) for _ in range(count)]


def test_every_mood_of_a_day_has_sentences() -> None:
    assert set(MOODS) == set(CALM) | set(ANGRY)
    assert set(PHRASES.remarks) == set(PHRASES.emoji) == set(PostSentiment)


def test_no_sentence_is_listed_under_two_moods() -> None:
    lines = [
        line
        for texts in [*PHRASES.sentences.values(), *PHRASES.remarks.values()]
        for listed in texts.values()
        for line in listed
    ]

    assert len(set(lines)) == len(lines) > 150


@pytest.mark.parametrize("register", Register)
def test_every_sentence_is_filled_in_but_for_the_brand(register: Register) -> None:
    sentences, remarks = _banks()

    for bank in [*sentences.values(), *remarks.values()]:
        assert len(bank[register]) % FORMS == 0
        for text in bank[register]:
            assert "{" not in text.replace("{brand}", "")
            assert text == text.strip() != ""


@pytest.mark.parametrize("mood", MOODS)
@pytest.mark.parametrize("register", Register)
def test_a_post_says_one_of_the_sentences_of_its_mood(mood: Mood, register: Register) -> None:
    sentences, _ = _banks()
    heard = Register.ENGLISH if register is Register.ENGLISH else Register.MARKED
    name = SEU.bare if register is Register.BARE else SEU.name

    own = tuple(text.replace("{brand}", name) for text in sentences[mood][register])
    spoken = tuple(text.replace("{brand}", SEU.name) for text in sentences[mood][heard])
    for words in written(mood, ONLY[register], count=10):
        assert words.caption.startswith(own)
        assert not words.transcription or words.transcription.startswith(spoken)
        assert "{" not in words.caption + words.transcription
        assert words.language == ("en" if register is Register.ENGLISH else "vi")


def test_advertisements_say_nothing_else() -> None:
    sentences, _ = _banks()
    own = {text.replace("{brand}", SEU.name) for text in sentences[SPAM][Register.MARKED]}

    for words in written(SPAM, ONLY[Register.MARKED], count=20):
        assert set(words.transcription.split(". ")) <= own | {""}


def test_without_marks_nothing_has_one() -> None:
    for words in written(PRAISE, ONLY[Register.BARE]):
        plain = re.sub(r"[^\w\s]", "", words.caption + "".join(words.remarks))
        assert without_marks(plain) == plain


def test_slang_is_written_short() -> None:
    said = " ".join(words.caption for words in written(PRAISE, ONLY[Register.SLANG]))

    assert not re.search(r"\b(không|được|mình|nhiều)\b", said)
    assert re.search(r"\b(đc|mik|ko)\b", said)
    assert len(set(PHRASES.slang.values())) == len(PHRASES.slang)


@pytest.mark.parametrize("platform", SPOKEN)
def test_texts_are_as_long_as_they_should_be(platform: str) -> None:
    words = written(PRAISE, ONLY[Register.MARKED], platform, count=200)

    captions = sum(len(each.caption) for each in words) / 200
    spoken = sum(len(each.transcription) for each in words) / sum(bool(each.transcription) for each in words)
    least, most = REMARKED[platform]
    comments = [len(each.remarks) for each in words]
    assert 100 < captions < 200
    assert (400 if platform == "tiktok" else 1800) < spoken < (600 if platform == "tiktok" else 3000)
    assert least <= min(comments) < max(comments) <= most
    assert 40 < sum(len(text) for each in words for text in each.remarks) / sum(comments) < 90


def test_some_texts_have_emoji_links_and_tags_and_some_have_no_transcription() -> None:
    words = written(PRAISE, count=300)

    assert 80 < sum(any(sign in each.caption for sign in PHRASES.emoji[PostSentiment.POSITIVE]) for each in words) < 160
    assert 3 < sum("https://" in each.caption for each in words) < 40
    assert 90 < sum(not each.transcription for each in words) < 160
    assert all(f"#{tag}" in each.caption for each in words for tag in each.tags)
    assert {each.tags[0] for each in words} == {"seudo7"}


def test_numbers_in_spam_look_like_phones_and_are_nobodys() -> None:
    spam = " ".join(words.caption for words in written(SPAM, count=200))

    numbers = re.findall(r"\d[\d .]{8,}\d", spam)
    assert len(numbers) > 100
    assert all(has_phone(number) for number in numbers)
    # Eleven digits, with a beginning that has not been in use since 2018.
    assert all(re.fullmatch(r"01(28|68|99)\d{7}", re.sub(r"\D", "", number)) for number in numbers)


def test_addresses_lead_nowhere() -> None:
    said = " ".join(words.caption + words.transcription for mood in MOODS for words in written(mood, count=30))

    assert set(re.findall(r"https?://[^/\s]+", said)) == {"https://notes.example", "https://bargains.example"}
    assert HALF not in said


def test_people_are_animals_with_a_number_and_few_have_many_followers() -> None:
    people = population()

    assert len({person.id for person in people}) == len({person.username for person in people}) == POPULATION
    assert all(person.name.endswith(str(number)) for number, person in enumerate(people))
    assert 0.05 < sum(person.followers >= 50_000 for person in people) / POPULATION < 0.2
    assert 0.02 < sum(person.verified for person in people) / POPULATION < 0.2


def test_every_failure_has_words() -> None:
    assert message_of("RATE_LIMITED") == MESSAGES["RATE_LIMITED"]
    assert message_of("DNS_ERROR") == "Dns error while fetching the item"


def test_times_are_written_as_crawlers_do() -> None:
    assert stamp(1_800_000_000) == "2027-01-15T08:00:00Z"


def test_all_brands_are_written_without_spaces_in_ids() -> None:
    assert not any(" " in Brand.of(name).slug or not Brand.of(name).tag.isalnum() for name in BRANDS)
