"""Keep live documents fresh, each at its own pace: the database is the truth, and memory is the clock.

Terms. A *target* is a document that is polled; a *kind* is a sort of them. A target is *due* at the points of a *grid*,
one interval apart; while it is *accelerated* the grid is finer, until the lease ends. A run that was due and never made
is *missed*. To *promote* is to make due now. What changed is a numbered *change*, for whoever follows the *feed*.

Tricky bits:

- One process polls a database. Everyone else writes what an admin may write, and is heard (`stores/polling.py`).
- Due times in memory are on a clock that nobody can set; only what is stored knows the time of day.
- Under too much load the order is by lateness in intervals, times weight, so that neither age nor priority starves.
"""
