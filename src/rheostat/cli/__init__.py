"""The command line: one file per command. Heavy modules are imported when a command runs, not before.

| file | what |
|---|---|
| `main.py` | the application and its exit codes |
| `run.py`, `plan.py`, `profile.py`, `replay.py`, `report.py` | commands of the product; `profile.py` has `drill`, too |
| `doctor.py`, `settings.py`, `kafka.py` | checks of this machine; settings for spark-submit; a broker |
| `simulate.py`, `compare.py`, `reproduce.py`, `bench.py`, `demo.py` | commands of the lab |
| `catalog.py` | `rheostat jobs`, `policies`, `loads` |
| `options.py` | options that commands share |
| `journals.py`, `user_function.py` | journals by URL, and their policies; the user's function by `module:name` |
| `reference.py` | writes docs/configuration.md |
| `display/` | tables, live displays, files |
"""
