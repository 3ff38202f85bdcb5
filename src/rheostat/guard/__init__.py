"""Limits before a decision, guards after it: a guard stops or cuts, and says so in the decision."""
