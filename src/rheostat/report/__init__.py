"""Pages for people: one HTML file each, with its plots, that works offline and can be printed or mailed.

`journal_page` tells what happened to one job, `comparison_page` sets policies side by side. plotly and jinja2 are
only loaded when a page is made.
"""

from rheostat.report.page import comparison_page, journal_page

__all__ = ["comparison_page", "journal_page"]
