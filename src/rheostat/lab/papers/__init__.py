"""The papers' comparisons, one folder each: `rheostat reproduce` prints their tables beside ours."""
