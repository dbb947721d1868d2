"""A folder for MARFT_DATA with a few rows in the published columns of the data sets that the presets for GPUs use."""

import json

PROGRAM_TESTS = [{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]
MATHEMATICS = [{"problem": f"What is {i} + {i}?", "answer": str(2 * i), "solution": ""} for i in range(160)]
DEEPCODER = [{"problem": f"Add {i}.", "tests": json.dumps(PROGRAM_TESTS)} for i in range(8)]
LIVECODEBENCH = [
    {"question_title": "Add", "question_content": f"Add {i}.", "platform": "atcoder", "question_id": f"q{i}",
     "contest_id": "c", "contest_date": "2024-08-17T00:00:00", "starter_code": "", "difficulty": "easy",
     "public_test_cases": json.dumps(PROGRAM_TESTS), "metadata": "{}"} for i in range(8)
]  # fmt: skip
CODEFORCES = [
    {"id": f"{i}/A", "title": "Add", "description": f"Add {i}.", "input_format": "Two.", "output_format": "One.",
     "note": None, "examples": [{"input": "1 2", "output": "3"}], "official_tests": [{"input": "5 6", "output": "11"}],
     "time_limit": 2.0, "memory_limit": 256.0, "generated_checker": None, "input_mode": "stdio", "rating": 800,
     "tags": ["math"]} for i in range(8)
]  # fmt: skip
FILES = {
    "deepscaler/train": MATHEMATICS,
    "aime2024/test": MATHEMATICS[:8],
    "math500/test": [{**row, "level": 1, "subject": "Algebra"} for row in MATHEMATICS[:8]],
    "deepcoder/lcbv5/train": DEEPCODER,
    "deepcoder/lcbv5/test": DEEPCODER,
    "livecodebench/test": LIVECODEBENCH,
    "codeforces/train": CODEFORCES,
    "codeforces/test": CODEFORCES,
}


def write_published_rows(folder):
    """Write the files below a folder and return it."""
    for name, rows in FILES.items():
        path = folder / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
