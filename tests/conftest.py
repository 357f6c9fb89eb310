import os

from hypothesis import settings

pytest_plugins = ["services.fixtures", "pytester"]

# No deadline: the machine may be busy with something else. The same examples every time where nobody watches.
settings.register_profile("suite", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("suite")
