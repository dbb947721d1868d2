"""Generation with llama.cpp, for ``throughput.py engine --llama-cpp PYTHON``; run by a Python with llama-cpp-python.

A repetition loads the adapter of each agent in turn, as after an update, and generates the replies to its prompts in
one batch. It begins when a line arrives on stdin, and its seconds are written to stdout as a line that begins with
"seconds".

The settings are a JSON object on the first line of stdin: the file ``base``, ``adapters`` as files by agent,
``prompts`` as token ids by agent, ``new_tokens``, ``threads``, and ``device``. This module imports nothing of this
project.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any

import llama_cpp as lib

PASS_TOKENS = 2048
"""Largest number of tokens of a forward pass."""


class Batch:
    """The prompts of one agent, and the tokens that follow them, in one context.

    Args:
        model: The base model.
        settings: See above.
    """

    def __init__(self, model: Any, settings: dict[str, Any]) -> None:
        prompts = [ids for of_agent in settings["prompts"].values() for ids in of_agent]
        self._new_tokens = settings["new_tokens"]
        rows = max(map(len, settings["prompts"].values()))
        parameters = lib.llama_context_default_params()
        parameters.n_seq_max = rows
        # Without a unified cache every row has the same share of the columns, and reads its own only. Shares are
        # multiples of 256 columns.
        parameters.n_ctx = rows * -(-(max(map(len, prompts)) + self._new_tokens) // 256) * 256
        parameters.kv_unified = False
        parameters.n_batch = parameters.n_ubatch = PASS_TOKENS
        parameters.n_threads = parameters.n_threads_batch = settings["threads"]
        self._context = lib.llama_init_from_model(model, parameters)
        if not self._context:
            raise RuntimeError("llama.cpp made no context")
        self._sampler = lib.llama_sampler_init_dist(0)
        self._batch = lib.llama_batch_init(PASS_TOKENS, 0, 1)

    def use(self, adapter: Any) -> None:
        """Activate an adapter, and forget what was read before."""
        lib.llama_memory_clear(lib.llama_get_memory(self._context), True)
        adapters, scales = (lib.llama_adapter_lora_p_ctypes * 1)(adapter), (ctypes.c_float * 1)(1.0)
        if lib.llama_set_adapters_lora(self._context, adapters, 1, scales):
            raise RuntimeError("llama.cpp refused an adapter")

    def generate(self, prompts: list[list[int]]) -> list[list[int]]:
        """Return the sampled replies to prompts, all of ``new_tokens`` tokens."""
        replies: list[list[int]] = [[] for _ in prompts]
        for row, ids in enumerate(prompts):
            for start in range(0, len(ids), PASS_TOKENS):
                part = ids[start : start + PASS_TOKENS]
                if self._batch.n_tokens + len(part) > PASS_TOKENS:
                    self._pass(replies)
                for i, token in enumerate(part, start):
                    self._add(token, i, row, last=i + 1 == len(ids))
        self._pass(replies)
        for step in range(self._new_tokens - 1):
            for row, ids in enumerate(prompts):
                self._add(replies[row][-1], len(ids) + step, row, last=True)
            self._pass(replies)
        return replies

    def _add(self, token: int, position: int, row: int, *, last: bool) -> None:
        batch, i = self._batch, self._batch.n_tokens
        batch.token[i], batch.pos[i], batch.logits[i] = token, position, last
        batch.n_seq_id[i], batch.seq_id[i][0] = 1, row
        batch.n_tokens += 1

    def _pass(self, replies: list[list[int]]) -> None:
        """Read the tokens of the batch, and draw the next token of each row whose last token is among them."""
        batch = self._batch
        if lib.llama_decode(self._context, batch):
            raise RuntimeError("llama.cpp could not read a batch")
        for i in range(batch.n_tokens):
            if batch.logits[i]:
                replies[batch.seq_id[i][0]].append(lib.llama_sampler_sample(self._sampler, self._context, i))
        batch.n_tokens = 0


def load_model(settings: dict[str, Any]) -> Any:
    """Return the base model."""
    lib.llama_backend_init()
    parameters = lib.llama_model_default_params()
    parameters.n_gpu_layers = 0 if settings["device"] == "cpu" else -1
    model = lib.llama_model_load_from_file(settings["base"].encode(), parameters)
    if not model:
        raise RuntimeError("llama.cpp did not load the model")
    return model


def main() -> None:
    """Run a repetition for every line on stdin after the settings."""
    settings = json.loads(sys.stdin.readline())
    model = load_model(settings)
    batch = Batch(model, settings)
    for _ in sys.stdin:
        start, tokens = time.perf_counter(), 0
        for agent, prompts in settings["prompts"].items():
            adapter = lib.llama_adapter_lora_init(model, settings["adapters"][agent].encode())
            if not adapter:
                raise RuntimeError(f"llama.cpp did not load the adapter of {agent}")
            batch.use(adapter)
            tokens += sum(map(len, batch.generate(prompts)))
            lib.llama_set_adapters_lora(batch._context, None, 0, None)
            lib.llama_adapter_lora_free(adapter)
        seconds, expected = time.perf_counter() - start, sum(map(len, settings["prompts"].values()))
        if tokens != expected * settings["new_tokens"]:
            raise RuntimeError(f"{tokens} tokens generated: expected {expected * settings['new_tokens']}")
        print("seconds", seconds, flush=True)


if __name__ == "__main__":
    main()
