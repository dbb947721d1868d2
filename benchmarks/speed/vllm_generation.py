"""Generation with vLLM, for ``throughput.py engine --vllm PYTHON``; run by the Python that has vLLM.

A repetition generates the replies to the prompts of all agents in one batch, each prompt with the adapter of its agent.
The model is not compiled. The adapters are loaded in every repetition, as after an update, and no prefix of an earlier
repetition is reused. A repetition begins when a line arrives on stdin, and its seconds are written to stdout as a line
that begins with "seconds".

The settings are a JSON object on the first line of stdin: the ``folder`` of the model, ``dtype``, ``adapters`` as
folders by agent, their ``rank``, ``prompts`` as token ids by agent, and ``new_tokens``. This module imports nothing of
this project.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from vllm import LLM, SamplingParams, TokensPrompt
from vllm.lora.request import LoRARequest


class Team:
    """The agents of a team in vLLM.

    Args:
        settings: See above.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._adapters, self._new_tokens = settings["adapters"], settings["new_tokens"]
        self._prompts = [(agent, ids) for agent, of_agent in settings["prompts"].items() for ids in of_agent]
        self._repetition = 0
        self._engine = LLM(
            model=settings["folder"],
            dtype=settings["dtype"],
            enable_lora=True,
            max_loras=len(self._adapters),
            max_lora_rank=settings["rank"],
            max_model_len=max(len(ids) for _, ids in self._prompts) + self._new_tokens,
            max_num_seqs=len(self._prompts),
            enforce_eager=True,
        )
        self._sampling = SamplingParams(
            temperature=1.0, max_tokens=self._new_tokens, min_tokens=self._new_tokens, ignore_eos=True, detokenize=False
        )

    def generate(self) -> int:
        """Generate all replies. Return the number of their tokens."""
        self._engine.reset_prefix_cache()
        self._repetition += 1
        first = 1 + self._repetition * len(self._adapters)  # an adapter with a new number is loaded anew
        requests = {
            agent: LoRARequest(f"{agent}-{self._repetition}", first + i, folder)
            for i, (agent, folder) in enumerate(self._adapters.items())
        }
        replies = self._engine.generate(
            [TokensPrompt(prompt_token_ids=ids) for _, ids in self._prompts],
            self._sampling,
            lora_request=[requests[agent] for agent, _ in self._prompts],
            use_tqdm=False,
        )
        return sum(len(reply.outputs[0].token_ids) for reply in replies)


def main() -> None:
    """Run a repetition for every line on stdin after the settings."""
    settings = json.loads(sys.stdin.readline())
    team, expected = Team(settings), sum(map(len, settings["prompts"].values())) * settings["new_tokens"]
    for _ in sys.stdin:
        start = time.perf_counter()
        tokens = team.generate()
        seconds = time.perf_counter() - start
        if tokens != expected:
            raise RuntimeError(f"{tokens} tokens generated: expected {expected}")
        print("seconds", seconds, flush=True)


if __name__ == "__main__":
    main()
