"""What is logged, for people: warnings to stderr, everything with --verbose."""

from __future__ import annotations

import logging
import sys


def configure(verbose: bool) -> None:
    """Set structlog up; called once, by the command that runs."""
    import structlog

    level = logging.DEBUG if verbose else logging.WARNING
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Looked up at every line, so that a progress bar on the same terminal is not torn apart.
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
