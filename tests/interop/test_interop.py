"""Episodes through the wrappers of RLlib, tianshou, TorchRL and SuperSuit, and grading in Ray actors.

    python -m pytest -m interop tests/interop

Each library has a virtual environment of its own, because its pinned versions conflict with ours. The environments
(0.8 GB for RLlib, 0.6 GB for Ray, 1.5 GB each for tianshou and TorchRL, which need torch) are created once, as
.venv-interop-* in the root of the repository or in the folder that the environment variable MARFT_INTEROP names.
"""

import json
import os
import subprocess
import venv
from pathlib import Path

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PACKAGES = {
    "rllib": ["ray[rllib]==2.60.0", "gymnasium==1.2.2", "pettingzoo==1.27.0"],
    "ray": ["ray[default]==2.60.0", "math-verify==0.9.0", "gymnasium==1.4.0", "pettingzoo==1.27.0"],
    "tianshou": ["tianshou==2.0.1", "torch==2.13.0", "pettingzoo==1.27.0"],
    "torchrl": ["torchrl==0.14.1", "torch==2.13.0", "gymnasium==1.4.0", "pettingzoo==1.27.0"],
    "supersuit": ["supersuit==3.11.0", "gymnasium==1.4.0", "pettingzoo==1.27.0"],
}
"""torch is pinned so that pip takes the CPU build; ray[rllib] itself pins gymnasium 1.2.2."""
TEAM = ["planner_0", "reasoner_0", "actor_0"]


def python_with(name):
    """Return the Python of a virtual environment with PACKAGES[name], which is created if necessary."""
    folder = Path(os.environ.get("MARFT_INTEROP", ROOT)) / f".venv-interop-{name}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES[name]):
        venv.create(folder, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"{name} cannot be installed here: {done.stderr[-300:]}")
        stamp.write_text("\n".join(PACKAGES[name]))
    return python


def run_script(name, action="play"):
    """Run ``<action>_<name>.py`` and return its report."""
    done = subprocess.run(
        [python_with(name), HERE / f"{action}_{name}.py"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_rllib_plays_an_episode():
    report = run_script("rllib")
    assert report["turns"] == TEAM * 2
    assert report["rewards"] == dict.fromkeys(TEAM, 1.0)
    assert report["terminated"] is True
    assert report["reset_infos"] == {}  # RLlib drops them, so a policy must not need them


def test_tianshou_plays_an_episode():
    report = run_script("tianshou")
    assert report["turns"] == TEAM * 2
    assert report["rewards"] == dict.fromkeys(TEAM, 1.0)
    assert report["terminated"] is True
    assert report["vector"] == TEAM[:1] * 2


def test_both_graders_work_in_ray_actors():
    """The actors are plain, asynchronous, and with four threads. A killed actor leaves no child process behind."""
    report = run_script("ray", action="grade")
    assert report["wrong"] == {name: [] for name in ("plain", "async", *(f"threads {n}" for n in range(4)))}
    assert report["servers"] >= 3
    assert report["left"] == []


def test_torchrl_plays_an_episode_of_one_agent_with_text_observations():
    report = run_script("torchrl")
    assert (report["observation"], report["reward"], report["done"]) == ("str", 1.0, True)
    assert report["messages"] == report["pettingzoo"] == "ValueError"


def test_supersuit_wraps_rewards_actions_and_observations():
    report = run_script("supersuit")
    duo = ("reasoner_0", "actor_0")
    assert report["clip_reward"] == dict.fromkeys(duo, 0.5) and report["reward_lambda"] == dict.fromkeys(duo, 3.0)
    assert report["action_lambda"] == "ABC" and report["observation_lambda"] == dict.fromkeys(duo, 1.0)
    assert report["arrays"] == ["AssertionError"] * 3
