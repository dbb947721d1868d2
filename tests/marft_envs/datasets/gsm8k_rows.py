"""Six rows in the columns of GSM8K, and a function that writes rows in every file format."""

import gzip
import json

import pytest

ROWS = [{"question": f"What is {i} + 1? ", "answer": f"{i} + 1 = {i + 1}\n#### {i + 1:,}"} for i in range(997, 1003)]
GOLDS = ["998", "999", "1000", "1001", "1002", "1003"]


def write_rows(path, rows):
    """Write rows in the format of the file's suffix, and return the path."""
    if path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow", reason="parquet needs pyarrow: pip install '.[data]'")
        pa.parquet = pytest.importorskip("pyarrow.parquet")
        pa.parquet.write_table(pa.Table.from_pylist(rows), path)
        return path
    text = json.dumps(rows) if ".json" in path.suffixes else "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path
