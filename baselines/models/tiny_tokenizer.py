"""The tiny model's tokenizer: one token a character, and the chat template that turns a relay turn into its prompt."""

from __future__ import annotations

from typing import Any

PAD, EOS, UNK = "<pad>", "<eos>", "<unk>"
CHARACTERS = "0123456789+-*/=()|,.: \nABQX"

# system messages are dropped; what was said so far, each text closed by "|", then the problem, then an open reply:
# "11|7+4=". A reply prefix is the final assistant message where no new reply is opened (add_generation_prompt false).
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
    """A fast tokenizer whose decode(encode(text)) is the text, for text of its characters; others become <unk>."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {symbol: index for index, symbol in enumerate([PAD, EOS, UNK, *CHARACTERS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()  # joins without blanks
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
