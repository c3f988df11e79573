"""The demo: coresets, uniform samples and all rows compared on real flights that three organisations hold.

`flights` has the three tables as they are, `comparison` learns on them, `results` is what is stored, `report` shows it.
`lateness` is one run of a yes/no label, as a user would look at it.
"""
