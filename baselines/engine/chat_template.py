"""Chat templates: from a conversation to the text that a model reads.

Templates differ in what they can express: many have no system role, most require that user and assistant alternate,
and some write a system message of their own into conversations without one. ``ChatTemplate`` finds out by rendering a
few short conversations, once per tokenizer, and arranges every conversation accordingly (``conversation.arrange``).
"""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from baselines.engine.control_tokens import control_tokens, without_surrogates
from baselines.engine.conversation import Abilities, Message, arrange
from baselines.engine.jinja_template import compile_template
from baselines.engine.replies import open_thinking
from baselines.field_types import check_field_types
from marft_envs.game.observation import END_THINKING, THINKING

_PROBES = ("probe0x", "probe1x", "probe2x", "probe3x")
_REPLY = "reply0x"
_TEMPLATES: WeakKeyDictionary[Any, dict[tuple[str, str, ChatSettings], ChatTemplate]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ChatSettings:
    """Settings of chat templates.

    Attributes:
        date: The date, YYYY-MM-DD, that a template which writes today's date takes for today. It is fixed so that
            prompts do not change from day to day.
        enable_thinking: Argument ``enable_thinking`` of templates that have it: whether the model thinks first.
        keep_thinking: Whether the thinking of a model, ``<think>...</think>``, is part of its message, which teammates
            read and which is graded. Otherwise it is left out; its tokens are sampled, counted and trained either way.
    """

    date: str = "2024-07-26"
    enable_thinking: bool = False
    keep_thinking: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.date, datetime.date):  # as TOML and YAML read 2024-07-26
            object.__setattr__(self, "date", self.date.isoformat())
        check_field_types(self)
        try:
            valid = datetime.date.fromisoformat(self.date).isoformat() == self.date
        except ValueError:
            valid = False
        if not valid:
            raise ValueError(f"ChatSettings date={self.date!r}: expected a date such as '2024-07-26'")


def template_of(tokenizer: Any, model: str, settings: ChatSettings) -> ChatTemplate:
    """Return the chat template of a tokenizer that has one, prepared once for the same arguments."""
    source = tokenizer.get_chat_template()
    known = _TEMPLATES.setdefault(tokenizer, {})
    key = (source, model, settings)
    if key not in known:
        known[key] = ChatTemplate(tokenizer, source, model, settings)
    return known[key]


class ChatTemplate:
    """A chat template and what it can express.

    Args:
        tokenizer: The tokenizer that it belongs to.
        source: The template, in Jinja.
        model: Name of the model, for errors.
        settings: Date and thinking.

    Attributes:
        abilities: What it can express.
        controls: Its control strings and those of the tokenizer.

    Raises:
        ValueError: The template cannot render a conversation of one user message.
    """

    def __init__(self, tokenizer: Any, source: str, model: str, settings: ChatSettings) -> None:
        self._source, self._model, self._settings = source, model, settings
        self._special = dict(tokenizer.special_tokens_map)
        user, *_ = _turns("user")
        self._rendered([user], add_generation_prompt=True)
        self.abilities = self._abilities()
        self.controls = control_tokens(tokenizer, source, self._scaffolds())

    def text(self, messages: Sequence[Message], reply_prefix: str = "", *, by_name: bool = False) -> str:
        """Return the prompt of a conversation: its turns, then the beginning of the reply.

        Args:
            messages: The messages of an observation. Control strings in their contents stay text.
            reply_prefix: Beginning of the reply; the text ends with it, character for character.
            by_name: Whether the template reads the names of messages; it then gets the messages as they are.

        Raises:
            ValueError: The template refuses the conversation.
        """
        clean = self.controls.neutralize
        if by_name:
            chat: list[dict[str, str]] = [{**m, "content": clean(m["content"])} for m in messages]
        else:
            chat = [{**turn, "content": clean(turn["content"])} for turn in arrange(messages, self.abilities)]
        if not reply_prefix:
            return self._rendered(chat, add_generation_prompt=True)
        return self._head_of_reply(chat, reply_prefix) + without_surrogates(reply_prefix)

    def _head_of_reply(self, chat: list[dict[str, str]], reply_prefix: str) -> str:
        """Return the text before the content of an open reply.

        The reply's content is a placeholder: a template may strip a content, or take thinking out of it.
        """
        text = self._rendered([*chat, {"role": "assistant", "content": _REPLY}], add_generation_prompt=False)
        if _REPLY not in text:
            raise ValueError(f"{self._named()} leaves out the last assistant message: a reply_prefix needs it")
        head = text[: text.rindex(_REPLY)]
        if open_thinking(reply_prefix) and head.rstrip().endswith(END_THINKING):
            # The template wrote a closed thinking part before the reply, which the prefix opens itself.
            head = self._rendered(chat, add_generation_prompt=True, enable_thinking=True)
            if head.rstrip().endswith(THINKING):
                head = head.rstrip().removesuffix(THINKING)
        return head

    def reply_openings(self) -> list[str]:
        """Return a conversation of one user message, then the same with the reply opened in every way that prompts do.

        These are: with the settings' thinking, with thinking, and with a reply prefix.
        """
        user = _turns("user")
        texts = [self._rendered(user, add_generation_prompt=False), self._rendered(user, add_generation_prompt=True)]
        texts.append(self._rendered(user, add_generation_prompt=True, enable_thinking=True))
        with contextlib.suppress(ValueError):  # a template without reply prefixes
            texts.append(self._head_of_reply(user, _REPLY) + _REPLY)
        return texts

    def after_turn(self) -> str:
        """Return the text that the template writes after a finished reply, "" if it writes none."""
        return self._ending("user", "assistant", answered=False) or ""

    # ---- rendering

    def _rendered(self, chat: Sequence[Mapping[str, str]], **arguments: Any) -> str:
        arguments = {"enable_thinking": self._settings.enable_thinking, **arguments}
        try:
            render = compile_template(self._source, self._settings.date)
            return render(messages=list(chat), tools=None, documents=None, **self._special, **arguments)
        except Exception as error:  # a template is a program: it may raise anything
            raise ValueError(
                f"{self._named()} refuses a conversation with the roles "
                f"{', '.join(m['role'] for m in chat)}: {type(error).__name__}: {error}"
            ) from error

    def _named(self) -> str:
        start = " ".join(self._source.split())[:60]
        return f"the chat template of model {self._model!r} ({start!r}...)"

    def _attempt(self, chat: list[dict[str, str]], *, answered: bool = False) -> str | None:
        """Return the text of a conversation; None if the template refuses it or leaves out a content."""
        try:
            text = self._rendered(chat, add_generation_prompt=answered)
        except ValueError:
            return None
        return text if all(message["content"] in text for message in chat) else None

    # ---- what it can express

    def _abilities(self) -> Abilities:
        # Some templates write the system message into the last message if a user wrote it, and else leave it out.
        with_system = (_turns("system", "user"), _turns("system", "user", "assistant"))
        system = all(self._attempt(chat) is not None for chat in with_system)
        return Abilities(
            system=system,
            system_alone=self._opens_reply("system"),
            empty_system=self._empty_system() if system else None,
            assistant_first=self._attempt(_turns("assistant", "user")) is not None,
            assistant_again=self._attempt(_turns("user", "assistant", "assistant", "user")) is not None
            and self._opens_reply("user", "assistant"),
        )

    def _opens_reply(self, *roles: str) -> bool:
        """Return whether a reply can follow a conversation: the template opens it as it does after a user message."""
        after_user, after = self._ending("user"), self._ending(*roles)
        if after_user is None or after is None:
            return False
        closed = self._ending("user", answered=False) or ""
        shared = next((i for i, (a, b) in enumerate(zip(closed, after_user, strict=False)) if a != b), len(closed))
        opening = after_user[shared:].strip()
        return after == after_user or bool(opening and after.strip().endswith(opening))

    def _ending(self, *roles: str, answered: bool = True) -> str | None:
        """Return what the template writes after the last content; None if it cannot express the conversation."""
        text, last = self._attempt(_turns(*roles), answered=answered), _PROBES[len(roles) - 1]
        return None if text is None else text[text.rindex(last) + len(last) :]

    def _empty_system(self) -> str | None:
        """Return the system message that keeps the template from writing one of its own; None if it writes none."""
        with_system, without = self._attempt(_turns("system", "user")), self._attempt(_turns("user"))
        for content in (None, "", " "):
            if content is not None:
                without = self._attempt([{"role": "system", "content": content}, *_turns("user")])
            if with_system and without and not _words(without) - _words(with_system):
                return content
        return None

    def _scaffolds(self) -> list[list[str]]:
        """Return what the template writes around the contents of a few conversations."""
        conversations = [("system", "user", "assistant", "user"), ("user", "assistant", "user"), ("user",)]
        found = []
        for roles in conversations:
            for answered in (True, False):
                text = self._attempt(_turns(*roles), answered=answered)
                if text is not None:
                    found.append(re.split("|".join(_PROBES), text))
        return found


def _turns(*roles: str) -> list[dict[str, str]]:
    """Return a conversation with a different placeholder in each message."""
    return [{"role": role, "content": probe} for role, probe in zip(roles, _PROBES, strict=False)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text)) - set(_PROBES)


def end_of_turn_ids(tokenizer: Any) -> frozenset[int]:
    """Return the id with which a tokenizer's chat template ends a reply, if it is an added token; else no id.

    Chat models are trained to end their replies with it, also where their settings name another end token only.
    """
    if tokenizer.chat_template is None:
        return frozenset()
    after = template_of(tokenizer, tokenizer.name_or_path, ChatSettings()).after_turn()
    ids = tokenizer(after.strip(), add_special_tokens=False)["input_ids"][:1]
    return frozenset(i for i in ids if i in tokenizer.added_tokens_decoder)
