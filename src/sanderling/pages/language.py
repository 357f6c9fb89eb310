"""In which language is a text? By its script, and by the small words without which nobody gets far.

None where that does not settle it: a wrong language is worse than none, and a page mostly says itself which it is in.
"""

import re
from collections import Counter

# Enough for small words to show, and for long pages to cost no more than short ones.
LOOK = 3000
# Fewer words are a menu or a heading: names, which say nothing.
FEWEST_WORDS = 8
FEWEST_LETTERS = 12
# Of running text in any of these languages, between a quarter and a half are words of its list.
LEAST_SHARE = 0.15
# How far ahead of the second the first must be.
LEAD = 1.25

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
_TAG = re.compile(r"[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|[0-9]{3}))?(?:-[a-z0-9]{1,8}){0,3}")

_WORDS = {
    "en": "the of and to in is that it for was with as on be at by this from or are which not have has but they you"
    " their were been will would there when who what can if its his her she we our your an all more",
    "de": "der die das und ist nicht ein eine einer einem einen zu den von mit sich auf für im dem des auch es an als"
    " wird sind oder aus bei nach wie noch nur wenn aber war hat wir sie ich über vor zum zur man",
    "fr": "le la les des et est un une du que qui dans pour pas sur au aux par plus avec ce cette il elle ne se sont"
    " nous vous ils mais ou où son sa ses leur d'un d'une c'est qu'il être à été comme on",
    "es": "el la los las de y que en un una es por con para del se no su al lo como más pero sus le ya o este sí porque"
    " esta entre cuando muy sin sobre también hay son fue está hasta nos desde todo",
    "pt": "o a os as de e que em um uma é por com para do da dos das se não no na nos nas ao mais mas foi como seu sua"
    " ou quando muito já também só pelo pela até isso ela ele entre são está você",
    "it": "il lo la i gli le di e che in un una è per con del della dei delle non si al alla da nel nella sono come più"
    " ma anche se ha ho o questo questa quando suo sua dal dalla loro essere era perché ci",
    "nl": "de het een en van in is dat op te zijn met voor niet aan er om ook als bij maar door naar uit nog over dan"
    " wordt worden deze dit die of ze hij zij wij we kan meer heeft hebben was had geen",
    "sv": "och att det som en ett på är av för med den till inte om har de i var jag men så sig från vi kan ska när"
    " eller hade under efter också där man vid mycket hon han utan blir här",
    "da": "og at det som en et på er af for med den til ikke om har de i var jeg men så sig fra vi kan skal når eller"
    " havde under efter også der man ved meget hun han uden bliver her hvad nogle noget",
    "no": "og at det som en et på er av for med den til ikke om har de i var jeg men så seg fra vi kan skal når eller"
    " hadde under etter også der man ved mye hun han uten blir her hva noen noe",
    "fi": "ja on ei se että oli hän joka mutta ovat kun niin myös tai kuin jos sen ole ne mitä voi sitä vain nyt"
    " hänen jotka siitä tämä olla ennen jälkeen kanssa mukaan",
    "pl": "i w na z że się nie jest do to jak o od po za co przez dla są ale być był była tak już tylko oraz może go"
    " jego ich tym który która które lub także czy gdy przed przy nad",
    "cs": "a se na je že v s z do to jako o od po za ve by byl byla jsou ale nebo jen už který která které také pro"
    " při když však není má jeho jejich tak pak před si",
    "hu": "a az és hogy nem is egy van ez meg csak de volt már mint ha még el azt vagy kell lehet minden után között"
    " nagyon amely szerint ezt így",
    "ro": "și în de la a cu pe nu este un o din care că pentru mai sunt ce au fost sau ca să al ale lui prin după dar"
    " dacă această acest între până foarte",
    "tr": "ve bir bu da de için ile olarak çok daha olan gibi kadar ne var sonra ama o en değil her ya mi ki olduğu"
    " göre ise veya taraf\u0131ndan ancak şey yok hem",
    "vi": "và của là có cho không được các một những trong với người đã này để khi đến về như từ nhiều ra vào sẽ cũng"
    " nhưng tôi ở thì phải rất làm trên đó còn",
    "id": "yang dan di untuk dengan ini dari pada tidak itu dalam adalah akan ke oleh juga sebagai ada atau mereka"
    " telah dapat karena saya kami lebih bisa para sudah saat tersebut kita seperti",
}
_LANGUAGES: dict[str, list[str]] = {}
for _language, _words in _WORDS.items():
    for _each in set(_words.split()):
        _LANGUAGES.setdefault(_each, []).append(_language)

# First and last letter of each script, and the language most written in it where there is one to say.
_SCRIPTS = (
    ("a", "\u024f", "latin"),
    ("\u0370", "\u03ff", "el"),
    ("\u0400", "\u052f", "cyrillic"),
    ("\u0531", "\u058f", "hy"),
    ("\u0590", "\u05ff", "he"),
    ("\u0600", "\u06ff", "arabic"),
    ("\u0900", "\u097f", "devanagari"),
    ("\u0980", "\u09ff", "bn"),
    ("\u0a00", "\u0a7f", "pa"),
    ("\u0a80", "\u0aff", "gu"),
    ("\u0b80", "\u0bff", "ta"),
    ("\u0c00", "\u0c7f", "te"),
    ("\u0c80", "\u0cff", "kn"),
    ("\u0d00", "\u0d7f", "ml"),
    ("\u0d80", "\u0dff", "si"),
    ("\u0e00", "\u0e7f", "th"),
    ("\u0e80", "\u0eff", "lo"),
    ("\u1000", "\u109f", "my"),
    ("\u10a0", "\u10ff", "ka"),
    ("\u1200", "\u137f", "am"),
    ("\u1780", "\u17ff", "km"),
    ("\u1e00", "\u1eff", "latin"),
    ("\u3040", "\u30ff", "kana"),
    ("\u3400", "\u9fff", "han"),
    ("\uac00", "\ud7af", "ko"),
)
# Letters that one language of a script has and the others have not, in the order to ask.
_TELLING = {
    "cyrillic": (("uk", "іїєґ"), ("be", "ў"), ("sr", "јљњђћ"), ("ru", "ыэё"), ("bg", "ъ")),
    "arabic": (("ur", "ٹڈڑے"), ("fa", "پچژگ"), ("ar", "ةىأإ")),
}
_HINDI = frozenset(("है", "हैं", "के", "का", "की", "में", "और", "से", "को", "यह", "वह", "पर", "नहीं", "एक", "था"))


def tag(value: str | None) -> str | None:
    """`value` as a language tag in lower case; None if it is none, or says that it does not know."""
    text = (value or "").strip().replace("_", "-").lower()
    return text if _TAG.fullmatch(text) and text[:3] not in ("und", "mul", "zxx", "mis") else None


def detect(text: str) -> str | None:
    """The language of `text` if there is enough of it and no doubt."""
    sample = text[:LOOK].lower()
    letters = Counter(filter(str.isalpha, sample))
    scripts: Counter[str] = Counter()
    for letter, times in letters.items():
        scripts[_script(letter)] += times
    total = scripts.total()
    if total < FEWEST_LETTERS:
        return None
    # Japanese is written in two scripts, and the Chinese one alone would outweigh the other.
    if scripts["kana"] >= 0.1 * (scripts["kana"] + scripts["han"]) > 0.05 * total:
        return "ja"
    script, times = scripts.most_common(1)[0]
    if times < 0.6 * total:
        return None
    return _within(script, letters, sample)


def _within(script: str, letters: Counter[str], sample: str) -> str | None:
    """The language among those of one script."""
    match script:
        case "latin":
            return _by_words(_WORD.findall(sample.replace("\u2019", "'")))
        case "cyrillic" | "arabic":
            return next((name for name, signs in _TELLING[script] if any(letters[sign] for sign in signs)), None)
        case "devanagari":
            return "hi" if len(_HINDI.intersection(sample.split())) >= 2 else None
        case "han":
            return "zh"
        case "kana" | "":
            return None
    return script


def _by_words(words: list[str]) -> str | None:
    if len(words) < FEWEST_WORDS:
        return None
    hits = Counter(language for word in words for language in _LANGUAGES.get(word, ()))
    (first, most), (_, next_most) = (hits.most_common(2) + [("", 0)] * 2)[:2]
    return first if most >= max(3, LEAST_SHARE * len(words)) and most >= LEAD * next_most else None


def _script(letter: str) -> str:
    return next((name for first, last, name in _SCRIPTS if first <= letter <= last), "")
