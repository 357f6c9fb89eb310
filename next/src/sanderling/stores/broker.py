"""What is known of brokers where no client of one is installed."""


class BrokerAway(Exception):  # noqa: N818 - it says what happened
    """A broker cannot be used now; the same call may work later. The message says why."""
