"""Statistics of runs: what arms reached, how sure that is, and whether one is better than another.

Pure functions over trials (`trial.py`): no file, clock or global random state; whatever draws takes
a seed. A figure that cannot be had (one problem, only ties) is None, never NaN.
"""
