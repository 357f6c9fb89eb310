"""The people of a simulated market: nobody. They are called after animals and colours, and have a number."""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import NamedTuple

POPULATION = 3000
ANIMALS = ("Cáo", "Mèo", "Sếu", "Rùa", "Cò", "Nhím", "Vạc", "Otter", "Heron", "Badger", "Newt", "Stoat")
HUES = ("Vàng", "Xám", "Nâu", "Tím", "Lười", "Amber", "Slate", "Dusty", "Pale", "Copper")
VERIFIED = 0.06


class Person(NamedTuple):
    """Somebody who writes; the same in all batches."""

    id: str
    name: str
    username: str
    avatar_url: str
    followers: int
    verified: bool


@cache
def population() -> tuple[Person, ...]:
    """Everybody; the same in every market."""
    return tuple(_everybody(Random("people of a market")))


def _everybody(chance: Random) -> Iterator[Person]:
    """A few have hundreds of thousands of followers, most have some hundreds."""
    for number in range(POPULATION):
        animal, hue = ANIMALS[number % len(ANIMALS)], HUES[number // len(ANIMALS) % len(HUES)]
        followers = int(10 ** (1.5 + 4.3 * chance.random() ** 2.5))
        yield Person(
            id=f"{6_800_000_000_000_000_000 + number * 1_000_003}",
            name=f"{animal} {hue} {number}",
            username=f"someone.{number:04d}",
            avatar_url=f"https://pictures.example/{number}.jpg",
            followers=followers,
            verified=chance.random() < VERIFIED * (1 if followers < 50_000 else 8),
        )
