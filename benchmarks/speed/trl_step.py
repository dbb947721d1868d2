"""GRPO steps of TRL on given prompts, for ``throughput.py engine --trl PYTHON``; run by the Python that has TRL.

A repetition is one generation of all replies and the two epochs of its update, for one LoRA adapter. It begins when a
line arrives on stdin, and its seconds are written to stdout as a line that begins with "seconds".

The settings are a JSON object on the first line of stdin: ``folder`` of the model, ``dtype``, ``device``, ``prompts``
as strings, ``new_tokens``, ``rows`` of a training pass, and ``repetitions``. This module imports nothing of this
project.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import Any

EPOCHS = 2


def train(settings: dict[str, Any], folder: str) -> None:
    """Train for ``repetitions`` generations, each of which waits for a line on stdin."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    class Clock(TrainerCallback):
        """Waits before a generation, and writes the seconds after its last optimiser step."""

        start = 0.0

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step % EPOCHS == 0:
                sys.stdin.readline()
                self.start = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            if state.global_step % EPOCHS == 0:
                print("seconds", time.perf_counter() - self.start, flush=True)

    prompts, rows = settings["prompts"], settings["rows"]
    config = GRPOConfig(
        output_dir=folder,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=len(prompts) // rows,
        num_generations=2,
        num_iterations=EPOCHS,
        max_steps=EPOCHS * settings["repetitions"],
        max_completion_length=settings["new_tokens"],
        generation_kwargs={"min_new_tokens": settings["new_tokens"]},
        temperature=1.0,
        beta=0.02,
        learning_rate=1e-4,
        bf16=False,
        gradient_checkpointing=False,
        use_cpu=settings["device"] == "cpu",
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
    )
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(settings["folder"], dtype=settings["dtype"]),
        reward_funcs=lambda completions, **_: [float(i % 2) for i in range(len(completions))],
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=AutoTokenizer.from_pretrained(settings["folder"], padding_side="left"),
        peft_config=LoraConfig(r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"),
        callbacks=[Clock()],
    )
    trainer.train()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        train(json.loads(sys.stdin.readline()), folder)
