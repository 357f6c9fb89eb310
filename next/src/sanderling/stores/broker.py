"""What is known of brokers where no client of one is installed."""

from sanderling.files import ServiceAway


class BrokerAway(ServiceAway):
    """A broker cannot be used now; the same call may work later. The message says why."""
