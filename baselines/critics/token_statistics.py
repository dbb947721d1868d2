"""Statistics of the reference model's token scores, for a whole message and for the part before each token.

They are means, shares, extremes and quantiles per token, not sums, so they have the same scale for messages of 2 and of
500 tokens. Numbers in nats are compressed as log(1 + x), which is nearly linear for the few nats of an ordinary token,
and rises without a bound.

Axes: n messages, T tokens of a message.
Source: docs/reference/critic.md, section 5.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from baselines.policies.policy import TokenScores

FIRST_TOKENS = 3
"""Tokens at the beginning of a message that the critic reads one by one."""
MESSAGE_STATISTICS = 12 + 2 * FIRST_TOKENS
"""Columns of ``message_statistics``."""
RUNNING_STATISTICS = 7
"""Columns of ``running_statistics``."""
_MODE_GAP = 1e-6  # nats; a token with a smaller gap is the most likely one


def message_statistics(scores: TokenScores, mask: Tensor, truncated: Tensor) -> Tensor:
    """Return statistics of whole messages, [n, MESSAGE_STATISTICS].

    With surprise = -log-probability of a token and gap = log-probability of the most likely token minus its own:

    0. mean surprise
    1. median surprise
    2. surprise that 90 % of the tokens do not exceed
    3. largest surprise
    4. mean gap
    5. largest gap
    6. sum of the gaps
    7. mean entropy
    8. share of tokens that are the most likely one
    9. whether all tokens are
    10. number of tokens
    11. whether the length limit ended the message (otherwise, a stop token did)
    12. to 14. surprise of each of the first FIRST_TOKENS tokens, 0 for a missing one
    15. to 17. gap of each of them

    Columns 0 to 7 and 12 to 17 are log(1 + x) for x in nats; column 10 is log(1 + number) / 4.

    Args:
        scores: Scores of the tokens under the reference model, [n, T] each, 0 at padding.
        mask: [n, T] bool, the tokens of each message.
        truncated: [n] bool.
    """
    count = mask.sum(-1).clamp(min=1)
    surprise, gap = -scores.logprobs, scores.gap
    modes = ((gap < _MODE_GAP) & mask).sum(-1)
    nats = [
        surprise.sum(-1) / count,
        _quantile(surprise, mask, 0.5),
        _quantile(surprise, mask, 0.9),
        _quantile(surprise, mask, 1.0),
        gap.sum(-1) / count,
        _quantile(gap, mask, 1.0),
        gap.sum(-1),
        scores.entropy.sum(-1) / count,
    ]
    others = [modes / count, modes == count, count.log1p() / 4, truncated]
    first = [functional.pad(x, (0, FIRST_TOKENS))[:, :FIRST_TOKENS] for x in (surprise, gap)]
    whole = torch.stack([*(_compressed(x) for x in nats), *(x.float() for x in others)], -1)
    return torch.cat([whole, *(_compressed(x) for x in first)], -1)


def running_statistics(scores: TokenScores, mask: Tensor) -> Tensor:
    """Return statistics of the tokens before each token, [n, T, RUNNING_STATISTICS].

    0. mean surprise so far
    1. largest surprise so far
    2. mean gap so far
    3. largest gap so far
    4. mean entropy so far
    5. share of tokens so far that are the most likely one
    6. number of tokens so far

    The scales are those of ``message_statistics``; all columns are 0 before the first token.

    Args:
        scores: Scores of the tokens under the reference model, [n, T] each, 0 at padding.
        mask: [n, T] bool, the tokens of each message.
    """
    surprise, gap, count = -scores.logprobs, scores.gap, mask.cumsum(-1)
    mode = ((gap < _MODE_GAP) & mask).cumsum(-1)
    each = count.clamp(min=1)
    sums = [surprise.cumsum(-1) / each, surprise.cummax(-1).values, gap.cumsum(-1) / each, gap.cummax(-1).values]
    sums.append(scores.entropy.cumsum(-1) / each)
    through = torch.stack([*(_compressed(x) for x in sums), mode / each, count.log1p() / 4], -1)
    # Statistics up to and including each token, shifted by one. Subtracting a token's own share from them instead would
    # leave a rounding error that depends on the token.
    return functional.pad(through[:, :-1], (0, 0, 1, 0))


def _compressed(nats: Tensor) -> Tensor:
    """Return log(1 + x). Rounding may have made x slightly negative."""
    return nats.clamp(min=0).log1p()


def _quantile(x: Tensor, mask: Tensor, share: float) -> Tensor:
    """Return [n], the smallest value of each row that at least ``share`` of its values do not exceed."""
    count = mask.sum(-1).clamp(min=1)
    rank = ((count * share).ceil().long() - 1).clamp(min=0)
    ordered = x.masked_fill(~mask, float("inf")).sort(-1).values
    return ordered.gather(-1, rank.unsqueeze(-1)).squeeze(-1).masked_fill(~mask.any(-1), 0.0)
