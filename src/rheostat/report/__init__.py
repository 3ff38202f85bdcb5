"""Pages for people: one HTML file each, with its plots, that works offline and can be printed or mailed.

`journal_page` shows what happened to one job, `plan_page` a capacity plan. plotly and jinja2 are only loaded when a
page is made.
"""
