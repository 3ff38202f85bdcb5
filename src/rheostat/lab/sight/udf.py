"""The job's pandas UDF. Only the job's own process and its workers import it: it needs pandas."""

from __future__ import annotations

from typing import Any

import pandas as pd
from pyspark.sql.pandas.functions import pandas_udf

from rheostat.lab.sight.work import worker

SECTIONS = 10


def section_udf(folder: str, record_s: float) -> Any:
    """Return a pandas UDF from a record's number to its section, which takes `record_s` per record."""

    def section(numbers: pd.Series) -> pd.Series:
        worker(folder, record_s).work(numbers.to_numpy())
        return numbers % SECTIONS

    return pandas_udf(section, "long")  # type: ignore[call-overload]
