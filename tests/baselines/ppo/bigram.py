"""A language model whose next-token probabilities are a table, and batches of episodes written by hand.

The model is a Llama with one layer that adds nothing: its embeddings are unit vectors and its head holds the logarithms
of the table. So every log-probability of a new team is known exactly at every temperature, and training still works,
because the adapters are on the layer.
"""

import itertools
from collections.abc import Sequence
from fractions import Fraction

import torch
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from baselines.critics.critic import TeamCritic
from baselines.policies.policy import LoraSettings, SharedBasePolicy
from baselines.trajectory import AgentTurns, Batch, Generation, make_batch
from marft_envs.batch import Episode
from marft_envs.batch.episode import Request, Step
from marft_envs.game.reward import TeamOutcome

EOS, A, B, C = range(4)
TABLE = ((1, 1, 1, 1), (1, 2, 3, 2), (1, 1, 2, 4), (4, 1, 1, 2))
"""TABLE[i][j] is proportional to the probability of token j after token i at temperature 1."""
HALF = 0.5
"""The tests' temperature. Dividing the logits by 1/2 squares the table: after A it is (1, 4, 9, 4) / 18."""
AGENTS = ("a_0", "b_0")
ACTION = (B, C, EOS)
"""An action after the prompt A. At temperature 1/2 its tokens have probability 9/18, 16/22 and 16/22."""


def probabilities(last: int) -> list[Fraction]:
    """Return the probabilities of the next token after ``last`` at temperature 1/2."""
    squares = [Fraction(weight) ** 2 for weight in TABLE[last]]
    return [square / sum(squares) for square in squares]


def logprobs(prompt: Sequence[int], action: Sequence[int]) -> list[float]:
    """Return the log-probability of each token of an action at temperature 1/2."""
    lasts = [prompt[-1], *action[:-1]]
    return [float(torch.tensor(float(probabilities(i)[j])).log()) for i, j in zip(lasts, action, strict=True)]


def entropy(last: int) -> float:
    """Return the entropy of the next token after ``last`` at temperature 1/2, in nats."""
    p = torch.tensor([float(x) for x in probabilities(last)])
    return float(-(p * p.log()).sum())


def bigram_model() -> LlamaForCausalLM:
    """Return the model of ``TABLE``."""
    size = len(TABLE)
    config = LlamaConfig(
        vocab_size=size, hidden_size=size, intermediate_size=size, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, max_position_embeddings=64, rms_norm_eps=1e-12, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=EOS, pad_token_id=None,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        layer = model.model.layers[0]
        for p in layer.parameters():
            p.normal_(generator=generator) if p.dim() > 1 else p.fill_(1.0)
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
        model.model.embed_tokens.weight.copy_(torch.eye(size))
        # The last norm turns the unit vector of a token into 2 = sqrt(size) times that vector.
        model.lm_head.weight.copy_(torch.tensor(TABLE).log().T / size**0.5)
    return model


def bigram_policy() -> SharedBasePolicy:
    """Return a new team of two agents, whose policies all equal the model of ``TABLE``."""
    return SharedBasePolicy(bigram_model(), AGENTS, LoraSettings(), 0)


def bigram_tokenizer(words: Sequence[str] = ("<eos>", "a", "b", "c")) -> PreTrainedTokenizerFast:
    """Return a tokenizer with one word per token of ``TABLE``."""
    backend = Tokenizer(models.WordLevel({word: token for token, word in enumerate(words)}, unk_token="<eos>"))
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>")


def generation(prompt: Sequence[int], action: Sequence[int], behaviour: Sequence[float]) -> Generation:
    """Return an action with the log-probabilities of its sampler."""
    return Generation(
        prompt_ids=tuple(prompt), action_ids=tuple(action), logprobs=tuple(behaviour), text="a b", truncated=False
    )  # fmt: skip


def episode_of(number: int, acting: Sequence[str], actions: Sequence[Generation], score: float) -> Episode:
    """Return a graded episode of one round in which the agents ``acting`` act one after another."""
    steps = [
        Step(Request(number, number, agent, 0, turn, {"messages": (), "reply_prefix": ""}), action.text, action)
        for turn, (agent, action) in enumerate(zip(acting, actions, strict=True))
    ]
    outcome = TeamOutcome(AGENTS, acting[-1:], {}, score, acting[-1], 1)
    return Episode(number, steps, outcome, terminated=True, number=number, group=number)


def batch_of(
    episodes: Sequence[Sequence[str]],
    scores: Sequence[float],
    *,
    actions: Sequence[Sequence[int]] = (ACTION,),
    reply_scores: Sequence[Sequence[float]] | None = None,
) -> Batch:
    """Return a batch of episodes of one round, with exact log-probabilities at temperature 1/2 from the sampler.

    Args:
        episodes: For each episode, the agents in the order in which they act. Every prompt is the token A.
        scores: For each episode, the team's score.
        actions: The turns, one after another over all episodes, use these actions in this order, again and again.
        reply_scores: For each episode, the score of each turn's own reply.
    """
    known = itertools.cycle([generation((A,), action, logprobs((A,), action)) for action in actions])
    played = [
        episode_of(number, acting, [next(known) for _ in acting], score)
        for number, (acting, score) in enumerate(zip(episodes, scores, strict=True))
    ]
    return make_batch(played, AGENTS, EOS, reply_scores=reply_scores)


def duo_batch(episodes: int = 4, **keywords) -> Batch:
    """Return a batch in which a and b act in every episode, and every second episode succeeds."""
    return batch_of([AGENTS] * episodes, [float(i % 2 == 0) for i in range(episodes)], **keywords)


def one_turn(prompt: Sequence[int], action: Sequence[int]) -> AgentTurns:
    """Return one turn of the first agent with any tokens, without log-probabilities from a sampler."""
    action = generation(prompt, action, [0.0] * len(action))
    return make_batch([episode_of(0, AGENTS[:1], [action], 1.0)], AGENTS, EOS).turns[AGENTS[0]]


def zero_weights(critic: TeamCritic) -> None:
    """Set every weight of a critic to 0, so that all its values are the same."""
    with torch.no_grad():
        for p in critic.networks.parameters():
            p.zero_()
