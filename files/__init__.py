"""The ground floor for files, which every other package may use: whole writes, errors in a line, caches and sums.

It knows nothing of data sets, models or runs, and imports none of the suite's packages.
"""
