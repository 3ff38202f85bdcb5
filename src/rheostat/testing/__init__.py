"""Conformance tests: one class per port. An implementation subclasses it, says how it is made, and is tested."""
