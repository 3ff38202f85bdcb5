"""`python -m rheostat`: the command line."""

from rheostat.cli.main import main

if __name__ == "__main__":
    main()
