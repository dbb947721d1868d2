"""Evaluations of one run are comparable: the same held-out problems and the same random numbers every time."""

from baselines.engine.torch_engine import Decoding
from baselines.runs.run import Run
from baselines.runs.run_config import RunConfig


def test_every_evaluation_has_the_same_problems_and_random_numbers():
    """At temperature 3, so that replies vary; training samples with other numbers in every update."""
    config = RunConfig(
        arm="ippo",
        environment_arguments={"dataset": "relay", "style": "symbols", "team": "duo"},
        episodes=2,
        updates=0,
        evaluation_items=16,
        decoding=Decoding(max_new_tokens=3, temperature=3.0),
    )
    run = Run(config)
    replies = []
    for update in (0, 1):
        _, episodes, _ = run.evaluated(update, "sampled")
        replies.append([(episode.index, step.text) for episode in episodes for step in episode.steps])
    assert len({text for _, text in replies[0]}) > 4
    assert replies[0] == replies[1], "an evaluation has random numbers of its own, so two of them cannot be compared"
    assert not {index for index, _ in replies[0]} & set(run.problems(1).tolist())
