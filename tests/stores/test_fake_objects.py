import pytest
from fake_objects import MemoryObjects
from objects_contract import ObjectsContract, Opens


@pytest.fixture
def opens() -> Opens:
    objects = MemoryObjects()
    return lambda: objects


@pytest.fixture
def bucket() -> str:
    return "crawl-results"


class TestMemoryObjects(ObjectsContract):
    pass
