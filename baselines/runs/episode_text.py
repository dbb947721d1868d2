"""Episodes as text: transcripts for a terminal, and rows of the tables of samples that trackers show."""

from __future__ import annotations

from marft_envs.batch import Episode

SAMPLE_COLUMNS = ("update", "problem", "prompt", "gold", "messages", "verdicts", "score")
"""Columns of a table of samples."""


def transcript(episode: Episode) -> str:
    """Return an episode as text: the problem, the private parts, the gold, the replies and the verdicts."""
    assert episode.problem is not None
    lines = [f"--- problem {episode.index}: {episode.problem.prompt}".rstrip()]
    lines += [f"    only {agent} reads: {part}" for agent, part in episode.problem.private.items()]
    lines.append(f"    gold: {episode.problem.gold}")
    lines += _replies(episode)
    return "\n".join([*lines, f"=> {episode.not_graded or f'{episode.score:g}'} ({_verdicts(episode)})"])


def sample_row(update: int, episode: Episode) -> tuple[int, int, str, str, str, str, float | None]:
    """Return an episode as a row of SAMPLE_COLUMNS; the score is None if the episode was not graded."""
    assert episode.problem is not None
    prompt = [episode.problem.prompt, *(f"only {agent} reads: {p}" for agent, p in episode.problem.private.items())]
    return (
        update,
        episode.index,
        "\n".join(prompt),
        str(episode.problem.gold),
        "\n".join(_replies(episode)),
        episode.not_graded or _verdicts(episode),
        None if episode.not_graded else episode.score,
    )


def _replies(episode: Episode) -> list[str]:
    return [f"[{s.request.agent}] {s.request.observation['reply_prefix']}{s.text}" for s in episode.steps]


def _verdicts(episode: Episode) -> str:
    verdicts = episode.outcome.verdicts if episode.outcome else {}
    return ", ".join(f"{agent} {verdict.outcome.value}" for agent, verdict in verdicts.items())
