"""Planning: what to do for a budget or a target, predicted from a pilot before the run itself sends anything."""
