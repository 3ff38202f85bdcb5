"""Learning: samples in, numbers out. What p tasks of an operator can do, and how far that is from what was seen."""
