"""RLlib's and tianshou's PettingZoo wrappers play an episode, and Ray's actors grade, each in a venv of its own: they
do not go with our pins.

    python -m pytest -m interop tests/interop

The venvs (0.8 GB for RLlib; 0.6 GB for Ray; 1.5 GB for tianshou, which needs torch) are made once, in .venv-interop-*
at the root of the repository, or in the folder that the variable MARFT_INTEROP names.
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
}
"""torch is pinned so that the machine's own (CPU) build is taken; ray[rllib] pins gymnasium 1.2.2."""
TEAM = ["planner_0", "reasoner_0", "actor_0"]


def python_with(name):
    """The Python of a venv that has PACKAGES[name]; made where it is not there yet. marft_envs itself comes by path."""
    place = Path(os.environ.get("MARFT_INTEROP", ROOT)) / f".venv-interop-{name}"
    python, stamp = place / "bin" / "python", place / ".installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES[name]):
        venv.create(place, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES[name]]
        done = subprocess.run(pip, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"{name} cannot be installed here: {done.stderr[-300:]}")
        stamp.write_text("\n".join(PACKAGES[name]))
    return python


def play(name, what="play"):
    """What ``<what>_<name>.py`` reports."""
    done = subprocess.run(
        [python_with(name), HERE / f"{what}_{name}.py"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_rllib_plays_an_episode():
    report = play("rllib")
    assert report["turns"] == TEAM * 2
    assert report["rewards"] == dict.fromkeys(TEAM, 1.0)
    assert report["terminated"] is True
    assert report["reset_infos"] == {}  # RLlib drops them: what a policy needs is in the observation


def test_tianshou_plays_an_episode():
    report = play("tianshou")
    assert report["turns"] == TEAM * 2
    assert report["rewards"] == dict.fromkeys(TEAM, 1.0)
    assert report["terminated"] is True
    assert report["vector"] == TEAM[:1] * 2


def test_both_graders_work_in_ray_actors():
    """Plain, asynchronous and with four threads; a killed actor leaves no sandbox server and no symbolic worker."""
    report = play("ray", what="grade")
    assert report["wrong"] == {name: [] for name in ("plain", "async", *(f"threads {n}" for n in range(4)))}
    assert report["servers"] >= 3
    assert report["left"] == []
