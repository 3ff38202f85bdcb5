"""What is measured: policies against each other, and Rheostat against what DESIGN.md promises."""
