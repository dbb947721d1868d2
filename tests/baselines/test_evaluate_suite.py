"""Evaluations with a folder: suites, endpoints, samples, faults, records, and the resumption of a stopped one."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from baselines import evaluate
from baselines.runs import evaluate_command
from baselines.runs.evaluation_suites import SUITES
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from baselines.runs.suite_command import numbers_of_tries
from marft_envs.coding.environment import DATASETS as CODE_DATASETS
from marft_envs.mathematics.environment import DATASETS as MATH_DATASETS
from tests.baselines.endpoint_server import chat_server

ROOT = Path(__file__).resolve().parents[2]
GOLDS = {f"What is {n} + {n}?": str(2 * n) for n in range(1, 9)}


@pytest.fixture
def data(tmp_path):
    """A folder with a GSM8K of eight problems, and no other data set."""
    folder = tmp_path / "data"
    (folder / "gsm8k").mkdir(parents=True)
    rows = [json.dumps({"question": q, "answer": f"It is. #### {gold}"}) for q, gold in GOLDS.items()]
    (folder / "gsm8k/test.jsonl").write_text("\n".join(rows))
    return folder


def question_of(body):
    content = "\n".join(message["content"] for message in body["messages"])
    return next(question for question in GOLDS if question in content)


def right(body, number):
    return f"It is \\boxed{{{GOLDS[question_of(body)]}}}."


def command(server, data, out, *words):
    endpoint = ["--endpoint", server.url, "--endpoint-model", "m", "--attempts", "1", "--concurrency", "1"]
    return ["--suite", "math", "--dataset", "gsm8k", "--path", str(data), *endpoint, "--out", str(out), *words]


def records(out, name="gsm8k"):
    return [json.loads(line) for line in (out / f"records/{name}.jsonl").read_text().splitlines()]


def results(out):
    return json.loads((out / "results.json").read_text())


# ---- suites


def test_every_suite_names_data_sets_of_its_environments():
    known = {"math_v0": MATH_DATASETS, "code_v0": CODE_DATASETS}
    for benchmarks in SUITES.values():
        assert all(benchmark.dataset in known[benchmark.environment] for benchmark in benchmarks)
        assert len({benchmark.name for benchmark in benchmarks}) == len(benchmarks)
    assert set(SUITES["all"]) == {*SUITES["math"], *SUITES["code"]}


def test_an_untrained_model_on_generated_problems_of_both_suites(tmp_path, capsys):
    out = tmp_path / "evaluation"
    words = ["--suite", "all", "--dataset", "word_problems", "list_programs", "--model", "tiny", "--items", "2"]
    assert evaluate.main([*words, "--samples", "2", "--max-new-tokens", "4", "--out", str(out)]) == 0
    found = results(out)
    assert set(found["results"]) == {"word_problems", "list_programs"}
    assert set(found["higher_is_better"]["word_problems"]) == {"avg@2", "pass@1", "pass@2", "maj@2"}
    assert set(found["higher_is_better"]["list_programs"]) == {"avg@2", "pass@1", "pass@2"}  # programs do not vote
    assert [len(record["episodes"]) for record in records(out, "word_problems")] == [2, 2]
    assert (out / "results.md").read_text() in capsys.readouterr().out


def test_a_data_set_that_is_absent_is_named_and_the_others_are_evaluated(data, tmp_path, capsys):
    out = tmp_path / "evaluation"
    words = ["--suite", "all", "--dataset", "gsm8k", "livecodebench", "--path", str(data), "--model", "tiny"]
    assert evaluate.main([*words, "--items", "2", "--max-new-tokens", "4", "--out", str(out)]) == 1
    output, errors = capsys.readouterr()
    assert "not available: livecodebench: " in output and str(data) in output
    assert "evaluate: incomplete; not available: livecodebench (set MARFT_DATA or --path" in errors
    assert set(results(out)["results"]) == {"gsm8k"} and set(results(out)["marft_envs"]["missing"]) == {"livecodebench"}
    assert "not available: livecodebench." in (out / "results.md").read_text()


def test_without_any_data_set_nothing_is_written(data, tmp_path, capsys):
    out = tmp_path / "evaluation"
    words = ["--suite", "code", "--dataset", "livecodebench", "--path", str(data), "--model", "tiny", "--out", str(out)]
    assert evaluate.main(words) == 2
    assert "evaluate: no data set of livecodebench was found: set MARFT_DATA" in capsys.readouterr().err
    assert not out.exists()


def test_a_prompt_that_does_not_fit_is_a_fault_and_not_the_end(tmp_path, capsys):
    out = tmp_path / "evaluation"
    words = ["--suite", "math", "--dataset", "word_problems", "--model", "tiny", "--items", "3", "--out", str(out)]
    assert evaluate.main([*words, "--max-new-tokens", "4", "--max-prompt-tokens", "5"]) == 1
    reasons = results(out)["marft_envs"]["faults"]["word_problems"]
    assert reasons and all("the prompt has more tokens than the limit of 5" in reason for reason in reasons)
    assert "items without a result: word_problems (3)" in capsys.readouterr().err


def test_the_prompts_that_fit_are_played_beside_those_that_do_not(tmp_path):
    words = ["--suite", "math", "--dataset", "word_problems", "--model", "tiny", "--team", "solo", "--items", "6"]
    words += ["--max-new-tokens", "4", "--out"]
    assert evaluate.main([*words, str(tmp_path / "all")]) == 0
    lengths = [record["prompt_tokens"] for record in records(tmp_path / "all", "word_problems")]
    limit = sorted(lengths)[2]
    assert evaluate.main([*words, str(tmp_path / "some"), "--max-prompt-tokens", str(limit)]) == 1
    fitting = [None not in record["scores"] for record in records(tmp_path / "some", "word_problems")]
    assert fitting == [length <= limit for length in lengths] and not all(fitting)


# ---- a trained team


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    arguments = {"dataset": "relay", "style": "symbols", "rounds": 2, "dependency": "full"}
    train(RunConfig(arm="marft", environment_arguments=arguments, updates=0, evaluation_items=6), folder=folder)
    return folder


def test_a_trained_team_scores_as_without_a_folder(trained, tmp_path):
    rows, out = tmp_path / "rows.jsonl", tmp_path / "evaluation"
    assert evaluate.main([str(trained), "--dataset", "relay", "--items", "6", "--out", str(rows)]) == 0
    assert evaluate.main([str(trained), "--dataset", "relay", "--items", "6", "--samples", "1", "--out", str(out)]) == 0
    row, found = json.loads(rows.read_text()), records(out, "relay")
    assert [record["index"] for record in found] == row["item_index"]
    assert [record["scores"] for record in found] == [[score] for score in row["item_score"]]
    assert results(out)["results"]["relay"]["avg@1,none"] == row["accuracy"]


def test_a_trained_team_keeps_its_d_and_rounds_on_another_data_set_and_options_replace_them(trained, tmp_path):
    out, other = tmp_path / "evaluation", tmp_path / "other"
    words = [str(trained), "--suite", "math", "--dataset", "word_problems", "--items", "2", "--max-new-tokens", "3"]
    assert evaluate.main([*words, "--out", str(out)]) == 0
    episode = records(out, "word_problems")[0]["episodes"][0]
    assert [(turn["round"], turn["agent"]) for turn in episode["turns"]] == [
        (0, "reasoner_0"), (0, "actor_0"), (1, "reasoner_0"), (1, "actor_0"),
    ]  # fmt: skip
    assert all(turn["generated_tokens"] <= 3 for turn in episode["turns"])
    assert evaluate.main([*words, "--rounds", "1", "--dependency", "none", "--out", str(other)]) == 0
    settings = json.loads((other / "config.json").read_text())
    assert settings["team"] == {"dependency": "none", "rounds": 1}
    assert len(records(other, "word_problems")[0]["episodes"][0]["turns"]) == 2


# ---- endpoints


def test_an_endpoint_is_evaluated_with_a_team_d_and_rounds(data, tmp_path):
    out = tmp_path / "evaluation"
    with chat_server(right) as server:
        words = ["--team", "trio", "--dependency", '[["planner_0", "actor_0"]]', "--rounds", "2", "--items", "4"]
        assert evaluate.main(command(server, data, out, *words)) == 0
    assert len(server.bodies) == 4 * 3 * 2  # items, agents, rounds
    first_round = [body for body in server.bodies if all(m["role"] != "assistant" for m in body["messages"])]
    assert len(first_round) == 4 * 3
    text = json.dumps(first_round)
    assert "planner_0: It is" in text and "reasoner_0: It is" not in text  # the edges replace D
    found = results(out)
    assert found["results"]["gsm8k"]["pass@1,none"] == 1.0
    assert found["n-samples"]["gsm8k"] == {"original": 8, "effective": 4}
    assert records(out)[0]["prompt_tokens"] == 60 and records(out)[0]["answers"] == ["2"]


def test_avg_pass_and_maj_of_samples(data, tmp_path):
    out, tries, lock = tmp_path / "evaluation", {}, threading.Lock()

    def script(body, number):
        question = question_of(body)
        with lock:
            sample = tries[question] = tries.get(question, -1) + 1
        gold = int(GOLDS[question])
        # Problem 2: two of four correct, in two spellings; the first answer wins the tie. Problem 4: one of four.
        answers = {2: [gold, f"{2 * gold}/2", 9, 9], 4: [9, 9, gold, 8]}.get(gold, [gold] * 4)
        return f"\\boxed{{{answers[sample]}}}"

    with chat_server(script) as server:
        words = ["--team", "solo", "--samples", "4", "--pass-at", "1", "3", "--items", "2"]
        assert evaluate.main(command(server, data, out, *words)) == 0
    assert [record["scores"] for record in records(out)] == [[1, 1, 0, 0], [0, 0, 1, 0]]
    assert [record["majority"] for record in records(out)] == [1.0, 0.0]
    entry = results(out)["results"]["gsm8k"]
    # pass@3: 1 - C(2, 3) / C(4, 3) = 1, and 1 - C(3, 3) / C(4, 3) = 3/4
    assert entry["avg@4,none"] == pytest.approx(0.375) and entry["pass@1,none"] == pytest.approx(0.375)
    assert entry["pass@3,none"] == pytest.approx(0.875) and entry["maj@4,none"] == 0.5
    # standard deviation of 1/2 and 1/4 over sqrt(2)
    assert entry["avg@4_stderr,none"] == pytest.approx(0.125)
    seeds = [body["seed"] for body in server.bodies]
    assert len(set(seeds)) == 8 and all(body["temperature"] == 0.7 for body in server.bodies)


def test_a_fault_is_no_wrong_answer_and_is_played_again(data, tmp_path, capsys):
    out, failing = tmp_path / "evaluation", ["What is 3 + 3?"]

    def script(body, number):
        return (503, {}, {"error": {"message": "overloaded"}}) if question_of(body) in failing else right(body, number)

    with chat_server(script) as server:
        words = command(server, data, out, "--team", "solo")
        assert evaluate.main(words) == 1
        assert "items without a result: gsm8k (1); the same command plays them again" in capsys.readouterr().err
        first = results(out)
        assert first["results"]["gsm8k"]["avg@1,none"] == 1.0 and first["results"]["gsm8k"]["sample_len"] == 7
        assert first["marft_envs"]["faults"]["gsm8k"] == ["policy of actor_0: HTTP 503 overloaded"]
        assert records(out)[2]["scores"] == [None]
        failing.clear()
        assert evaluate.main(words) == 0
    assert len(server.bodies) == 9 and question_of(server.bodies[-1]) == "What is 3 + 3?"
    assert results(out)["results"]["gsm8k"]["sample_len"] == 8
    assert "| gsm8k | 8 | 100.0 | 100.0 | 67.6 to 100.0 | 0.0 | 0 |" in (out / "results.md").read_text()


def test_a_killed_evaluation_is_resumed(data, tmp_path):
    """Its last record is lost in half, as after a power cut; the others are not played again."""
    whole, out, blocked = tmp_path / "whole", tmp_path / "evaluation", threading.Event()

    def script(body, number):
        if len(server.bodies) > 6 and not blocked.is_set():
            process.send_signal(signal.SIGKILL)
            blocked.wait(60)
        return right(body, number)

    words = ["--team", "solo", "--samples", "2"]
    with chat_server(script) as server:
        program = [sys.executable, "-m", "baselines.evaluate", *command(server, data, out, *words)]
        process = subprocess.Popen(program, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert process.wait(timeout=600) == -signal.SIGKILL
        blocked.set()
        path = out / "records/gsm8k.jsonl"
        kept = path.read_bytes().splitlines(keepends=True)
        assert 2 <= len(kept) < 8 and not (out / "results.json").exists()
        path.write_bytes(b"".join(kept[:-1]) + kept[-1][:50])
        before = len(server.bodies)
        assert evaluate.main(command(server, data, out, *words)) == 0
        assert len(server.bodies) - before == 2 * (8 - len(kept) + 1)
        assert evaluate.main(command(server, data, whole, *words)) == 0
    assert records(out) == records(whole)
    assert results(out)["results"] == results(whole)["results"]


def test_ctrl_c_does_not_wait_for_replies_that_are_under_way(data, tmp_path, capsys):
    out, blocked = tmp_path / "evaluation", threading.Event()

    def script(body, number):
        if number == 5:
            os.kill(os.getpid(), signal.SIGINT)
            blocked.wait(60)
        return right(body, number)

    with chat_server(script) as server:
        start = time.monotonic()
        assert evaluate.main(command(server, data, out, "--team", "solo")) == 130
        assert time.monotonic() - start < 50
        blocked.set()
        assert "stopped; the same command resumes the evaluation" in capsys.readouterr().err
        assert len(records(out)) == 4
        assert evaluate.main(command(server, data, out, "--team", "solo")) == 0
    assert len(records(out)) == 8


def test_more_items_continue_an_evaluation(data, tmp_path):
    out = tmp_path / "evaluation"
    with chat_server(right) as server:
        assert evaluate.main(command(server, data, out, "--team", "solo", "--items", "3")) == 0
        assert evaluate.main(command(server, data, out, "--team", "solo", "--items", "5")) == 0
    assert len(server.bodies) == 5 and [record["index"] for record in records(out)] == [0, 1, 2, 3, 4]


def test_another_evaluation_in_the_folder_is_refused(data, tmp_path, capsys):
    out = tmp_path / "evaluation"
    with chat_server(right) as server:
        assert evaluate.main(command(server, data, out, "--team", "solo", "--items", "2")) == 0
        for words, message in (
            (["--team", "duo"], 'team.team was "solo", now "duo"'),
            (["--team", "solo", "--max-new-tokens", "7"], "sampling.max_new_tokens was 1024, now 7"),
            (["--team", "solo", "--samples", "2"], "samples was 1, now 2"),
            (["--team", "solo", "--rounds", "2"], "team.rounds was not set, now 2"),
        ):
            assert evaluate.main(command(server, data, out, "--items", "2", *words)) == 2
            errors = capsys.readouterr().err
            assert f"--out {out}: the folder holds another evaluation: " in errors and message in errors
        (data / "gsm8k/test.jsonl").write_text(json.dumps({"question": "What is 9 + 9?", "answer": "#### 18"}))
        assert evaluate.main(command(server, data, out, "--team", "solo", "--items", "1")) == 2
        assert "line 1 is of another problem 0 than the data set has now" in capsys.readouterr().err
    assert len(server.bodies) == 2


def test_a_folder_with_other_files_is_refused(data, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    with chat_server(right) as server:
        assert evaluate.main(command(server, data, tmp_path, "--team", "solo")) == 2
    assert "the folder is not empty and holds no evaluation" in capsys.readouterr().err and not server.bodies


def test_the_key_is_read_from_the_named_variable(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "evaluation"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("MY_KEY", "s3cret")
    with chat_server(right) as server:
        words = ["--team", "solo", "--items", "1"]
        assert evaluate.main(command(server, data, out, *words, "--endpoint-key-env", "MY_KEY")) == 0
        assert server.headers[0]["Authorization"] == "Bearer s3cret"
        assert evaluate.main(command(server, data, tmp_path / "o", *words, "--endpoint-key-env", "NO_KEY")) == 2
        assert "--endpoint-key-env NO_KEY: the variable is not set" in capsys.readouterr().err
        monkeypatch.setenv("OPENAI_API_KEY", "other")
        assert evaluate.main(command(server, data, tmp_path / "p", *words)) == 0
        assert server.headers[-1]["Authorization"] == "Bearer other"
    assert not any(b"s3cret" in path.read_bytes() for path in out.rglob("*") if path.is_file())


# ---- options


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--suite", "math"], "--out: expected the folder of the evaluation"),
        (["--suite", "math", "--out", "o", "--env", "math_v0"], "--env: expected no --suite with it"),
        (["--suite", "math", "--out", "o", "--samples", "0"], "--samples 0: expected at least 1"),
        (["--samples", "2", "--mode", "greedy", "--out", "o"], "--samples 2: expected --mode sampled"),
        (["--endpoint", "http://h/v1", "--out", "o"], "--endpoint: expected --endpoint-model NAME with it"),
        (["--endpoint", "http://h/v1", "--model", "tiny"], "--model: expected no --endpoint with it"),
        (["run", "--endpoint", "http://h/v1"], "RUN: expected no --endpoint with it"),
        (["--endpoint-model", "m"], "--endpoint-model: expected --endpoint with it"),
        (["--concurrency", "2"], "--concurrency: expected --endpoint with it"),
        (["--pass-at", "2"], "--pass-at: expected --suite, --samples or --endpoint with it"),
        (["run", "--suite", "math", "--model", "tiny", "--out", "o"], "--model: expected no RUN with it"),
    ],
)
def test_options_that_exclude_each_other(capsys, words, message):
    with pytest.raises(SystemExit) as end:
        evaluate.parse(words)
    assert end.value.code == 2 and message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dataset", "gsm9k"], "--suite math: dataset='gsm9k': expected one of gsm8k, "),
        (["--samples", "4", "--pass-at", "5"], "--pass-at 5: expected 1 to 4, the number of --samples"),
    ],
)
def test_wrong_values_are_one_line(capsys, words, message, tmp_path):
    assert evaluate.main(["--suite", "math", "--model", "tiny", "--out", str(tmp_path / "o"), *words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("evaluate: ") and message in errors and errors.count("\n") == 1


def test_pass_at_powers_of_two_by_default():
    assert [numbers_of_tries(n, None) for n in (1, 2, 6, 8)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]
    assert numbers_of_tries(8, [5, 1, 5]) == [1, 5]
    config = evaluate_command.config_of_model(evaluate.parse(["--dependency", "star", "--rounds", "3"]), "gsm8k")
    assert (config.environment_arguments["dependency"], config.environment_arguments["rounds"]) == ("star", 3)
