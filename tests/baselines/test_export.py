"""The command ``export``: a folder that loads without the run, its model card, and the upload to a hub."""

import json
import os
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from peft import AutoPeftModelForCausalLM
from transformers import AutoModelForCausalLM, AutoTokenizer

import baselines
import marft_envs
from baselines.engine.torch_engine import Decoding
from baselines.export import main
from baselines.models.sources import SHIPPED
from baselines.runs.evaluation import evaluation_items, item_interval, play_items
from baselines.runs.run import train
from baselines.runs.run_config import RunConfig
from marft_envs.batch import BatchRunner

ROOT = Path(__file__).resolve().parents[2]
RELAY = {"dataset": "relay", "style": "symbols"}
IDS = torch.tensor([[10, 13, 7, 16]])  # 7+4=


def train_team(folder, **changes):
    fields = {
        "arm": "marft",
        "environment_arguments": RELAY,
        "updates": 2,
        "episodes": 16,
        "evaluate_every": 2,
        "evaluation_items": 8,
        "settings": {"learning_rate": 3e-3, "normalization": "sum"},
        "decoding": Decoding(max_new_tokens=4),
    }
    rows = []
    run = train(RunConfig(**{**fields, **changes}), rows.append, folder=folder)
    return run, rows


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The tiny model in a folder, as a user has a base model."""
    return shutil.copytree(SHIPPED["tiny"], tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    """A run of two updates on that base: its folder, the run, its rows, and its export."""
    folder = tmp_path_factory.mktemp("trained")
    run, rows = train_team(folder / "run", model=str(base))
    assert main([str(folder / "run"), "--out", str(folder / "team")]) == 0
    return folder / "run", run, rows, folder / "team"


def test_an_agent_loads_with_peft_and_the_tokenizer_beside_it(trained):
    _, run, _, export = trained
    for agent in ("reasoner_0", "actor_0"):
        model = AutoPeftModelForCausalLM.from_pretrained(export / "adapters" / agent)
        with torch.no_grad(), run.policy.of(agent).weights.active(agent):
            torch.testing.assert_close(model(IDS).logits, run.policy.of(agent).weights.causal_lm(IDS).logits)
            with run.policy.of(agent).weights.active(None):
                assert not torch.equal(model(IDS).logits, run.policy.of(agent).weights.causal_lm(IDS).logits)
        tokenizer, own = AutoTokenizer.from_pretrained(export / "adapters" / agent), run.loaded.tokenizer
        assert tokenizer.chat_template == own.chat_template and tokenizer("7+4=").input_ids == own("7+4=").input_ids


def test_an_export_loads_as_a_team_without_the_run(trained, tmp_path):
    _, _, rows, export = trained
    moved = shutil.copytree(export, tmp_path / "elsewhere")
    team = baselines.load_team(moved, greedy=True)
    runner = BatchRunner(marft_envs.math_v0.env(**RELAY, split="test"), 8)
    scores = [e.score for e in play_items(runner, team.policy, evaluation_items(runner, 8, seed=0))]
    assert team.update == 2 and scores == next(r for r in rows[::-1] if r.get("mode") == "greedy")["item_score"]
    assert marft_envs.Team.from_yaml(moved / "team.yaml").agents == ("reasoner_0", "actor_0")
    assert not list(moved.rglob("state.pt"))


def test_the_card_has_base_data_arm_scores_with_intervals_and_licence(trained, base):
    _, _, rows, export = trained
    card = ModelCard.load(export / "README.md")
    assert card.data.library_name == "peft" and card.data.pipeline_tag == "text-generation"
    results = {result.metric_name: result.metric_value for result in card.data.eval_results}
    for mode in ("greedy", "sampled"):
        before, after = (next(r for r in rows if (r.get("mode"), r["update"]) == (mode, u)) for u in (0, 2))
        assert results[f"accuracy of the team, {mode} decoding, in %"] == pytest.approx(100 * after["accuracy"])
        cells = [
            "{:.1f} [{:.1f}, {:.1f}]".format(100 * r["accuracy"], *(100 * e for e in item_interval(r["item_score"])))
            for r in (before, after)
        ]
        assert f"| relay | {mode} | {cells[0]} | {cells[1]} | 8 |" in card.text
    for words in ("arm `marft` on `relay`", "after update 2", "`adapters/actor_0/`", "tiny-relay-duo-v1", "## Licence"):
        assert words in card.text
    assert str(base) not in card.text and str(base) not in card.content.split("---")[1]


def test_the_licence_is_that_of_the_shipped_model_or_the_one_given(tmp_path):
    train_team(tmp_path / "run", updates=0)
    assert main([str(tmp_path / "run"), "--out", str(tmp_path / "one")]) == 0
    assert ModelCard.load(tmp_path / "one" / "README.md").data.license == "mit"
    assert main([str(tmp_path / "run"), "--out", str(tmp_path / "two"), "--licence", "cc-by-4.0"]) == 0
    assert ModelCard.load(tmp_path / "two" / "README.md").data.license == "cc-by-4.0"


def test_a_base_folder_with_a_readme_has_its_licence(base, tmp_path):
    model = shutil.copytree(base, tmp_path / "base")
    (model / "README.md").write_text("---\nlicense: apache-2.0\n---\n# A model\n")
    (tmp_path / "run").mkdir()
    train_team(tmp_path / "run", updates=0, model=str(model))
    assert main([str(tmp_path / "run"), "--out", str(tmp_path / "team")]) == 0
    assert ModelCard.load(tmp_path / "team" / "README.md").data.license == "apache-2.0"


def test_a_team_of_full_copies_shared_and_frozen_agents(base, tmp_path):
    changes = {"tuning": "full", "frozen": ["reasoner_0"], "model": str(base), "updates": 1}
    run, _ = train_team(tmp_path / "run", **changes)
    assert main([str(tmp_path / "run"), "--out", str(tmp_path / "team")]) == 0
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "team" / "adapters" / "actor_0")
    with torch.no_grad(), run.policy.of("actor_0").weights.active("actor_0"):
        torch.testing.assert_close(model(IDS).logits, run.policy.of("actor_0").weights.causal_lm(IDS).logits)
    card = ModelCard.load(tmp_path / "team" / "README.md")
    assert card.data.library_name == "transformers" and "those of the base model (not trained)" in card.text
    assert "AutoModelForCausalLM.from_pretrained" in card.text


def test_agents_that_share_an_adapter_and_a_script(tmp_path):
    (tmp_path / "said.txt").write_text("7")
    changes = {"scripted": {"reasoner_0": str(tmp_path / "said.txt")}, "sharing": {"actor_0": "both"}, "updates": 0}
    train_team(tmp_path / "run", **changes)
    assert main([str(tmp_path / "run"), "--out", str(tmp_path / "team")]) == 0
    card = ModelCard.load(tmp_path / "team" / "README.md").text
    assert "| `reasoner_0` | none: a script | |" in card and "| `actor_0` | `adapters/both/` |" in card


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "full"], "exists and is not an empty folder: expected a new or empty folder"),
        (["--out", "new", "--update", "7"], "no checkpoint of update 7"),
        (["--out", "new", "--push", "name"], "--push 'name': expected OWNER/NAME"),
        (["--out", "new", "--push", "owner/name"], "expected --base OWNER/NAME, the same model on the hub"),
        (["--out", "new", "--private"], "--private: expected --push with it"),
    ],
)
def test_wrong_options_are_one_line_and_write_nothing(trained, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main([str(trained[0]), *words]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("export: ") and message in errors and errors.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


# ---- the hub


class Hub(BaseHTTPRequestHandler):
    """The requests of an upload, answered as the hub does. ``received`` has (path, body)."""

    received: list

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.received.append((self.path, body))
        if "/preupload/" in self.path:
            files = json.loads(body)["files"]
            answer = {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in files]}
        elif "/commit/" in self.path:
            address = f"http://{self.headers['Host']}/owner/team/commit/" + "0" * 40
            answer = {"success": True, "commitOid": "0" * 40, "commitUrl": address, "hookOutput": ""}
        else:
            answer = {"url": f"http://{self.headers['Host']}/owner/team", "errors": [], "warnings": []}
        self._send(200, answer)

    def do_GET(self):
        self._send(404, {"error": "Entry not found"})

    do_HEAD = do_GET

    def _send(self, code, answer):
        data = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *arguments):
        """Print nothing."""


def export(*words, **environment):
    """Run the command in a process of its own, because the hub's address is read when its client is imported."""
    command = [sys.executable, "-m", "baselines.export", *map(str, words)]
    clean = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=clean | environment)


@pytest.mark.slow
def test_a_push_sends_every_file_of_the_folder(trained, tmp_path):
    Hub.received = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        words = [trained[0], "--out", tmp_path / "team", "--push", "owner/team", "--base", "owner/tiny", "--private"]
        done = export(*words, HF_ENDPOINT=address, HF_TOKEN="hf_test", NO_PROXY="127.0.0.1")
    finally:
        server.shutdown()
    assert done.returncode == 0, done.stderr
    created = next(json.loads(body) for path, body in Hub.received if path.endswith("/repos/create"))
    assert (created["name"], created["organization"], created["visibility"]) == ("team", "owner", "private")
    commit = next(body for path, body in Hub.received if "/commit/" in path)
    sent = {r["value"]["path"] for r in map(json.loads, commit.splitlines()) if r["key"] == "file"}
    assert sent == {p.relative_to(tmp_path / "team").as_posix() for p in (tmp_path / "team").rglob("*") if p.is_file()}
    settings = json.loads((tmp_path / "team" / "adapters" / "actor_0" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "owner/tiny"
    assert ModelCard.load(tmp_path / "team" / "README.md").data.base_model == "owner/tiny"
    assert f"pushed to {address}/owner/team/commit/" in done.stdout


def test_without_a_hub_the_folder_is_complete_and_the_error_is_one_line(trained, tmp_path):
    words = [trained[0], "--out", tmp_path / "team", "--push", "owner/team", "--base", "owner/tiny"]
    done = export(*words, HF_HUB_OFFLINE="1")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith(f"export: {tmp_path / 'team'} is complete, but was not pushed to owner/team (")
    assert f"Later: hf upload owner/team {tmp_path / 'team'}" in done.stderr
    assert (tmp_path / "team" / "README.md").is_file()
