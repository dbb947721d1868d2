"""Extraction of the answer from a reply: hand-written cases, and inputs that are slow for a quadratic algorithm."""

import time

import pytest

from marft_envs.mathematics.grader.answer_extraction import TAIL_CHARS, extract

FOUND = [  # reply, answer
    (r"So \boxed{42}.", "42"),
    (r"First \boxed{41}, no: it is \boxed{42}", "42"),  # the last one, not a list: there are words between
    (r"\boxed{\frac{1}{\sqrt{2}}}", r"\frac{1}{\sqrt{2}}"),
    (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),  # escaped braces are part of the answer
    (r"\boxed{x = \fbox{5}}", "x = {5}"),
    (r"\boxed{1} or \boxed{2}", "1, 2"),
    (r"$x = \boxed{2}$ and $x = \boxed{3}$", "2, 3"),
    (r"\boxed{4} and \boxed{4}", "4"),
    (r"\boxed{42} \boxed{43}", "42, 43"),
    (r"\boxed{2} \text{ or } \boxed{3}", "2, 3"),
    (r"$x=\boxed{2}, \quad x = \boxed{3}$", "2, 3"),
    ("\\boxed{840}., but let me explain.\n\n**Final Answer**\n\\boxed{840}", "840"),
    (r"\boxed{41}. Wait, that is wrong.\n\boxed{42}", "42"),
    (r"\boxed 42", "42"),
    (r"\boxed{41} and then \boxed{42", "41"),  # the last balanced one
    (r"The answer is 7. \boxed{42}", "42"),  # a box has priority over any other mark
    ("<answer> 42 </answer> #### 7", "42"),
    ("6 * 7 = 42\n#### 42", "42"),
    ("#### Final Answer\n42", "42"),
    ("#### Step 1: think\nThe answer is 42.", "42"),
    ("The answer is 41. No, the answer is 42.", "42"),
    ("The answer is 3.5.", "3.5"),
    ("The answer is 1,000 dollars.", "1,000 dollars"),
    ("The answer is 42, because 6 times 7.", "42"),
    ("**Answer:** 42", "42"),
    ("The answer is **42**.", "42"),
    ("The answer is 2**5.", "2**5"),
    ("Answer:\n$$\n42\n$$", "42"),
    ("ANSWER = 42", "42"),
    ("The answer is 120 -", "120 -"),
    ("答案是42。", "42"),
    (r"<think>\boxed{1}</think> answer: 42", "42"),
]

NOT_FOUND = ["", "42", "I do not know.", r"\boxed{42", r"\boxed{}", "The answer is", "<answer>42", "It is 42, I think."]


@pytest.mark.parametrize(("reply", "answer"), FOUND)
def test_answer_is_found(reply, answer):
    assert extract(reply) == (answer, "")


@pytest.mark.parametrize("reply", NOT_FOUND)
def test_a_missing_answer_has_a_reason(reply):
    answer, reason = extract(reply)
    assert answer == ""
    assert reason


def test_an_unbalanced_box_is_not_replaced_by_another_mark():
    assert extract(r"The answer is 42: \boxed{42")[0] == ""


def test_only_the_tail_is_read():
    assert extract(r"\boxed{42}" + " " * (TAIL_CHARS - 10))[0] == "42"
    assert extract(r"\boxed{42}" + " " * (TAIL_CHARS - 9))[0] == ""


@pytest.mark.parametrize("reply", [None, 42, b"42", ["42"]])
def test_the_error_names_the_type_of_the_reply(reply):
    with pytest.raises(TypeError, match=f"reply: got {type(reply).__name__}, expected str"):
        extract(reply)


@pytest.mark.parametrize(
    "piece",
    [
        r"\boxed{",
        "{",
        "}",
        r"\boxed{}",
        "answer is ",
        "answer",
        "answer:\n",
        "####",
        " ",
        "\n",
        "*",
        "$",
        "<answer>",
        "</answer>",
        "\\",
        "$3$, and ",
        ", and x",
        '"answer":',
        "# answer\n",
    ],
)
def test_extraction_is_linear(piece):
    started = time.perf_counter()
    for around in ("{}", r"\boxed{{{}}}", "answer is 5{}"):
        extract(around.format(piece * 1_000_000))
    assert time.perf_counter() - started < 1.0


@pytest.mark.parametrize("piece", [" ", "$", r"\quad ", r"\, ", ", ", "and ", "x = "])
@pytest.mark.parametrize("joint", ["", ",", " and", ", x =", r"\text{"])
def test_the_connector_between_two_boxes_is_matched_in_linear_time(joint, piece):
    between = (joint + piece * 19_000)[:19_000]  # short enough for both boxes to be in the part that is read
    started = time.process_time()
    assert extract(rf"\boxed{{1}}{between}!\boxed{{2}}") == ("2", "")
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is 60. Let me repeat: the answer is 6", ""),
        ("The answer is 60. Let me repeat: the answer is 60", "60"),
        ("The answer is 60. I was wrong, the answer is 6.", "6"),
        ("The answer is 60. I was wrong, the answer is 7", "7"),
        ("The answer is Tuesday. So the answer is Tues", ""),
        ("Answer: 1234\nAnswer: 123", ""),
        ("The answer is 6", "6"),
    ],
)
def test_a_reply_that_ends_within_its_last_answer_has_none(reply, answer):
    assert extract(reply)[0] == answer
