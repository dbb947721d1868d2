"""Tokenizer of the tiny models: one token per character, with a chat template for the turns of relay and report."""

from __future__ import annotations

from typing import Any

PAD, EOS, UNK = "<pad>", "<eos>", "<unk>"
CHARACTERS = "0123456789+-*/=()|,.: \nABQX"

# The prompt of a turn is "11|7+4=": the earlier replies, each followed by "|", then the problem. System messages are
# left out. With add_generation_prompt false, a final assistant message is the beginning of the reply (the reply
# prefix). The shipped models' cards hold the hash of this template: a change needs new models.
CHAT_TEMPLATE = """\
{%- set open_prefix = not add_generation_prompt and messages[-1]['role'] == 'assistant' -%}
{%- for m in messages -%}
{%- set said = m['role'] == 'assistant' or (m['role'] == 'user' and m.get('name', 'task') != 'task') -%}
{%- if said and not (open_prefix and loop.last) -%}{{- m['content'] + '|' -}}{%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
{%- if m['role'] == 'user' and m.get('name', 'task') == 'task' -%}{{- m['content'] -}}{%- endif -%}
{%- endfor -%}
{%- if open_prefix -%}{{- messages[-1]['content'] -}}{%- endif -%}
"""


def tiny_tokenizer() -> Any:
    """Return a fast tokenizer with one token per character of CHARACTERS. Other characters become <unk>."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {symbol: index for index, symbol in enumerate([PAD, EOS, UNK, *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()  # joins the tokens without spaces
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=512,
    )
