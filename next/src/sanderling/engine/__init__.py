"""The one loop that every system runs: whose turn is it, may we send, send, judge, store.

Terms. An *item* is one thing to fetch. A *class* says why (new, again, …); classes of one host take turns. *Answered*:
the host responded, whatever it said about the item. *Refused*: the host limits us; the item has not failed. *Failed*:
no response, or one of the host's errors; blame decides whether the item or the host is at fault. *Down*: a host that is
at fault; only probes are sent to it. *Parked*: a host without a good response for `patience`; its items wait on disk,
it is still probed, and no run waits for it.
"""
