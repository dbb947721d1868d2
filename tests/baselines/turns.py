"""Turns of one agent, made from token ids."""

from collections.abc import Sequence

from baselines.trajectory import AgentTurns, Generation, padded_turns


def turns_of(rows: Sequence[Sequence[int]], reply: int, *, truncated: bool = False) -> AgentTurns:
    """Return one turn per row, in episodes of their own, with log-probabilities of 0 from the sampler.

    Args:
        rows: For each turn, the token ids of its prompt and its action.
        reply: Number of tokens of every action, which are the last ones of its row.
        truncated: Whether the length limit ended the actions.
    """
    generations = [Generation(tuple(row[:-reply]), tuple(row[-reply:]), (0.0,) * reply, "", truncated) for row in rows]
    return padded_turns(generations, [(number, 0) for number in range(len(rows))], 0)
