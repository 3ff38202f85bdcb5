"""The pandas UDF of the stock job. Only its driver imports this file: workers get the function itself, and pandas."""

from __future__ import annotations

import time
from typing import Any

import pandas as pd
from pyspark.sql.pandas.functions import pandas_udf


def section_udf(sections: int, record_s: float) -> Any:
    """Return a pandas UDF from a record's number to its section, which takes `record_s` per record."""

    def section(numbers: pd.Series) -> pd.Series:
        time.sleep(record_s * len(numbers))
        return numbers % sections

    return pandas_udf(section, "long")  # type: ignore[call-overload]
