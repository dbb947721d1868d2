"""``BatchRunner.stream``: its order, groups and end."""

from concurrent.futures import ThreadPoolExecutor

from marft_envs import FlexMG
from marft_envs.batch import BatchRunner
from tests.marft_envs.batch.sum_task import SHORT_OR_LONG, TEAM, Sum, say_index, stream, uneven


def test_a_stream_is_the_same_whichever_episode_finishes_first():
    def problems(episodes):
        return [(e.number, e.index, e.seed) for e in episodes]

    expected = problems(stream(lambda index: True, 1, episodes=9, seed=3))
    assert [number for number, _, _ in expected] == list(range(9))
    for size in (2, 4, 16):
        for early in (lambda i: i % 2, lambda i: i % 3, lambda i: True):
            assert problems(stream(early, size, episodes=9, seed=3)) == expected
            with ThreadPoolExecutor(2) as executor:
                assert problems(stream(early, size, executor, episodes=9, seed=3)) == expected
    assert problems(stream(lambda i: True, 2, episodes=9, seed=4)) != expected


def test_freed_environments_begin_the_next_episode():
    sizes, finished = [], []
    early = uneven(lambda index: index != 0)

    def policy(requests):
        sizes.append(sorted(r.episode for r in requests))
        return early(requests)

    runner = BatchRunner(FlexMG(Sum(), SHORT_OR_LONG, rounds=3), 2)
    for episode in runner.stream(policy, indices=[0, 1, 2, 3, 4]):
        finished.append((episode.number, len(episode.steps), len(sizes)))
    assert sizes == [[0, 1], [0, 2], [0, 3], [4]]
    assert finished == [(0, 3, 3), (1, 1, 3), (2, 1, 3), (3, 1, 3), (4, 1, 4)]


def test_groups_in_a_stream():
    episodes = stream(lambda i: i % 2, 3, episodes=5, groups=2)
    assert [(e.group, e.member) for e in episodes] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
    assert episodes[0].index == episodes[1].index != episodes[2].index
    assert episodes[0].seed != episodes[1].seed
    episodes = stream(lambda i: True, 3, indices=iter([5, 6]), groups=2)
    assert [e.index for e in episodes] == [5, 5, 6, 6]


def test_a_stream_without_a_limit_does_not_end():
    runner = BatchRunner(FlexMG(Sum(), TEAM), 4)
    taken = [episode.number for episode, _ in zip(runner.stream(say_index), range(50), strict=False)]
    assert taken == list(range(50))
