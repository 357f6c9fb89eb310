pytest_plugins = ["services.fixtures", "pytester"]
