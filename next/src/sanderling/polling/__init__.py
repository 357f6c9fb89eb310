"""Polling: documents of an upstream, each requested at its own cadence, and what changed told to followers.

Terms. A *target* is a document that is requested again and again. What is *live* is requested to the instant: the race
that runs, the next one, and each target with an interval below a second; all others take turns. To *promote* a target
is to make it the next one. A *change* is one row that came, changed or went, with its *position* in the log of changes.
"""
