"""The demo: coresets, uniform samples and all rows compared on real flights that three organisations hold.

`flights` makes the three tables, `comparison` learns on them, `results` is what is stored, `report` shows it.
"""
