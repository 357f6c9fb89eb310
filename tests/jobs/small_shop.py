"""A shop of 20 lists and 200 items, as answers by path; and the job of `examples/shop.py`."""

from pathlib import Path

from small_api import answer

from sanderling import Job, Reply

SHOP = "https://shop.example"
LISTS, EACH = 20, 10
EXAMPLE = Path(__file__).parents[2] / "examples" / "shop.py"
ASIDE = ("/about", "https://other.example/item/1", "mailto:a@b.example")
ROBOTS = b"User-agent: *\nDisallow: /item/13$\nDisallow: /basket\n"


def html(body: str) -> Reply:
    """A page."""
    return answer(body=f"<!doctype html><title>Shop</title><body>{body}".encode(), Content_Type="text/html")


def shop() -> dict[str, Reply]:
    """The pages by path; each list leads to items, to the next list and to what is nobody's."""
    found = {"/robots.txt": answer(body=ROBOTS, Content_Type="text/plain")}
    for page in range(1, LISTS + 1):
        numbers = range((page - 1) * EACH + 1, page * EACH + 1)
        links = "".join(f'<li><a class="item" href="../item/{number}#buy">{number}</a>' for number in numbers)
        following = f'<a class="next" href="/list/{page + 1}">next</a>' if page < LISTS else ""
        aside = "".join(f'<a class="item" href="{url}">aside</a>' for url in ASIDE)
        found[f"/list/{page}"] = html(f"<ul>{links}</ul>{aside}{following}")
        for number in numbers:
            found[f"/item/{number}"] = html(f"<h1> Item\n{number}</h1><b class=price>{number}.50</b>")
    return {f"{SHOP}{path}": reply for path, reply in found.items()}


def shop_job() -> Job:
    """The job of the example."""
    names: dict[str, Job] = {}
    exec(compile(EXAMPLE.read_text(), str(EXAMPLE), "exec"), names)  # noqa: S102 - our own example
    return names["job"]


def items(*, without: int | None = None) -> list[dict[str, object]]:
    """The records that the job must have."""
    numbers = [number for number in range(1, LISTS * EACH + 1) if number != without]
    return [{"number": each, "name": f"Item {each}", "price": f"{each}.50"} for each in numbers]
