import pytest
from hypothesis import given
from hypothesis import strategies as st

from sanderling.pages.language import _WORDS, detect, tag

# ruff: noqa: RUF001 - letters that look like others are the point
SENTENCES = {
    "en": "The boat was late again, and nobody at the harbour could say when it would be back with the fish.",
    "de": "Das Boot war wieder zu spät, und niemand am Hafen wusste, wann es mit den Fischen zurück sein wird.",
    "fr": "Le bateau est encore en retard et personne dans le port ne sait quand il sera de retour avec les poissons.",
    "es": "El barco llegó tarde otra vez y nadie en el puerto sabía cuándo iba a volver con los peces para la cena.",
    "pt": "O barco chegou tarde outra vez e ninguém no porto sabia quando ele voltaria com os peixes para o jantar.",
    "it": "La barca è di nuovo in ritardo e nessuno nel porto sa quando sarà di ritorno con il pesce per la cena.",
    "nl": "De boot is weer te laat en niemand in de haven weet wanneer hij met de vis voor het eten terug zal zijn.",
    "sv": "Båten är sen igen och ingen i hamnen vet när den kommer tillbaka med fisken som vi ska äta till middag.",
    "da": "Båden er sen igen, og ingen i havnen ved, hvad der er sket, eller om den bliver væk. Jeg har noget af fisken"
    " fra i går, men det er ikke meget.",
    "no": "Båten er sen igjen, og ingen i havnen vet hva som har skjedd, eller om den blir borte. Jeg har noe av fisken"
    " fra i går, men det er ikke mye.",
    "fi": "Vene on taas myöhässä, ja kukaan ei tiedä, mitä on tapahtunut tai kun se tulee, mutta kala on jo syöty.",
    "pl": "Łódź jest znowu spóźniona i nikt w porcie nie wie, co się stało, ani czy wróci do nas przed nocą z rybami.",
    "cs": "Loď má zase zpoždění a nikdo v přístavu neví, co se stalo, nebo jestli se vrátí, ale ryby už jsou.",
    "hu": "A hajó már megint késik, és senki nem tudja, hogy mi történt vele, vagy hogy van még hal az asztalon.",
    "ro": "Barca este din nou în întârziere și nimeni nu știe ce a fost sau dacă mai vine până la noapte cu pește.",
    "tr": "Tekne yine geç kaldı ve ne olduğu ya da ne zaman döneceği için kimse bir şey bilmiyor ama balık çok var.",
    "vi": "Con thuyền lại đến muộn và không ai ở bến cảng có thể nói khi nào nó sẽ về với những con cá cho bữa tối.",
    "id": "Perahu itu terlambat lagi dan tidak ada orang di pelabuhan yang tahu apa yang akan terjadi dengan ikan.",
    "ru": "Лодка снова опоздала, и никто в порту не знал, когда она вернётся с рыбой и что же мы будем есть.",
    "uk": "Човен знову запізнився, і ніхто в порту не знав, коли він повернеться з рибою та що ми їстимемо.",
    "bg": "Лодката отново закъсня и никой на пристанището не знаеше кога ще се върне с рибата за вечеря.",
    "el": "Το καράβι άργησε πάλι και κανείς στο λιμάνι δεν ήξερε πότε θα γυρίσει με τα ψάρια.",
    "he": "הסירה שוב איחרה ואיש בנמל לא ידע מתי היא תחזור עם הדגים",
    "ar": "تأخرت السفينة مرة أخرى ولم يعرف أحد في الميناء متى تعود بالأسماك",
    "fa": "قایق باز هم دیر کرد و هیچ‌کس در بندر نمی‌دانست کی با ماهی‌ها برمی‌گردد چه بگویم",
    "hi": "नाव फिर से देर से आई और बंदरगाह में किसी को नहीं पता था कि वह मछली के साथ कब लौटेगी",
    "th": "เรือมาสายอีกแล้วและไม่มีใครที่ท่าเรือรู้ว่าเมื่อไรจะกลับมาพร้อมปลา",
    "ja": "船はまた遅れていて、港の人は誰もいつ魚を持って帰ってくるのか知りませんでした。",
    "zh": "船又晚点了，港口没有人知道它什么时候会带着鱼回来，我们只好等着。",
    "ko": "배가 또 늦어서 항구에 있는 사람 아무도 언제 생선을 가지고 돌아올지 몰랐다.",
}  # fmt: skip


@pytest.mark.parametrize(("language", "sentence"), SENTENCES.items())
def test_a_sentence_is_enough(language: str, sentence: str) -> None:
    assert detect(sentence) == language


def test_every_language_has_its_sentence() -> None:
    assert set(_WORDS) <= set(SENTENCES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OK",
        "The end",
        "It is what it was, that is",
        "Sanderling, the Dunlin, Curlew, Whimbrel, Godwit of Turnstone and Knot, " + "Ruff, Plover, Avocet, Snipe " * 5,
        "12 345 67.8 % 2026-03-01 !!! 100 200 300 400",
        "Sanderling Dunlin Curlew Whimbrel Godwit Turnstone Knot Ruff Plover Avocet",
        "lorem ipsum dolor sit amet consectetur adipiscing elit sed eiusmod tempor",
        "de la de la de la de la de la",
        "Båten har de med till en sen om i var så vi kan",
        "Привет",
        "привет как дела всем на свете",
        "The boat was late and Лодка снова опоздала и никто не знал когда",
    ],
)
def test_no_language_where_there_is_doubt(text: str) -> None:
    assert detect(text) is None


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("en", "en"),
        ("EN-gb", "en-gb"),
        (" pt_BR ", "pt-br"),
        ("zh-Hans-CN", "zh-hans-cn"),
        ("es-419", "es-419"),
        ("x-default", None),
        ("und", None),
        ("english", None),
        ("en, de", None),
        ("{{ lang }}", None),
        ("", None),
        (None, None),
    ],
)
def test_tags(value: str | None, found: str | None) -> None:
    assert tag(value) == found


@given(st.text())
def test_any_text_has_a_known_language_or_none(text: str) -> None:
    found = detect(text)

    assert found is None or tag(found) == found
