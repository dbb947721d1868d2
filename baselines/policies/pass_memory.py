"""Memory of one forward and backward pass of a policy, calculated from the model's shape (docs/memory.md).

Axes: n turns of a pass, L tokens of the longest, P first tokens that they share and that are read once, Q first tokens
that the base alone reads, A action tokens of all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from baselines.models.shape import ModelShape
from baselines.policies.head import chunk_positions

_LORA_LAYERS = 7  # linear layers of a decoder layer, each with an adapter: q, k, v, o, gate, up, down
_LOGITS_COPIES = 5  # fp32 tensors of a chunk's size at the peak: logits, scaled, log-softmax, its exponential, gradient


@dataclass(frozen=True)
class PassMemory:
    """Bytes that a pass holds for backward, and at its peak.

    Attributes:
        shape: Shape of the model.
        element: Bytes of a number in the matrix products: 2 with a 16-bit base model, else 4.
        rank: Rank of the LoRA adapter; None if all weights are trained.
        eager: Whether attention keeps the matrix of its weights, as transformers' "eager" implementation does.
    """

    shape: ModelShape
    element: int
    rank: int | None
    eager: bool

    def layer(self, turns: int, length: int, shared: int = 0, base: int = 0) -> int:
        """Return the bytes that one decoder layer saves for backward, for n turns of L tokens.

        They share P of them, or the base alone reads Q of each.
        """
        s, b = self.shape, self.element
        tokens = turns * (length - shared - base) + shared
        # The inputs of the attention and of the MLP, once for the adapters (or weight gradients) of all matrices that
        # read them; queries and the input of the output projection; of the MLP, the gate, its activation, the other
        # factor and the product.
        products = b * (2 * s.width + 2 * s.attention_width + 4 * s.mlp)
        products += b * _LORA_LAYERS * self.rank if self.rank is not None else 0
        # Normalisations run in fp32. Trained normalisation weights need their result as well as their input.
        norms = 4 * s.norms * s.width * (1 if self.rank is not None else 2)
        norms += 4 * (s.attention_width + s.kv_width) * s.head_norms
        # The softmax is fp32; with 16-bit products its result is saved once more in 16 bits.
        weights = s.heads * length * (4 if b == 4 else 4 + b) if self.eager else 4 * s.heads
        # Repeated keys and values, of a shared prefix for every turn; where there is one, also before the repetition.
        keys = b * 2 * (s.attention_width + (s.kv_width if shared else 0))
        return tokens * (products + norms + weights) + turns * length * keys

    def saved(
        self, turns: int, length: int, actions: int, *, checkpointing: bool, shared: int = 0, base: int = 0
    ) -> int:
        """Return the bytes of activations that the forward pass keeps until its backward pass.

        Args:
            turns: n, the number of turns.
            length: L, tokens of the longest turn, prompt and action.
            actions: A, action tokens of all turns.
            checkpointing: Whether only the inputs of the layers are saved.
            shared: P, first tokens that all turns share; 0 with checkpointing.
            base: Q, first tokens of a turn that the base alone reads, before an activated adapter.
        """
        s = self.shape
        stream = self.element if self.rank is not None else 4  # the residual stream of a trained copy is fp32
        inputs = turns * (length - base) * stream * s.width
        a_layer = inputs if checkpointing else self.layer(turns, length, shared, base)
        casts = 0 if checkpointing else self._cast_weights()  # those of a checkpointed layer are made again
        states = turns * (length - base) * 4 * s.width
        return s.layers * a_layer + states + self.kept(turns * base) + self._head_saved(actions) + casts

    def kept(self, tokens: int) -> int:
        """Return the bytes of the keys and values of some tokens in all layers."""
        return 2 * self.shape.layers * self.shape.kv_width * self.element * tokens

    def peak(
        self, turns: int, length: int, actions: int, *, checkpointing: bool, shared: int = 0, base: int = 0
    ) -> int:
        """Return the bytes at the peak of a pass: what is saved, and what one layer or the head works with.

        The backward pass of a layer holds gradients of about the size of what the layer saved. With checkpointing, the
        layer is computed again first. The arguments are those of ``saved``.
        """
        layer = self.layer(turns, length, shared, base) * (2 if checkpointing else 1)
        chunk = min(actions, chunk_positions(self.shape.vocabulary)) * self.shape.vocabulary * 4 * _LOGITS_COPIES
        saved = self.saved(turns, length, actions, checkpointing=checkpointing, shared=shared, base=base)
        before = self.kept(turns * base) + self.prompts(turns, base) if base else 0  # the base's own pass
        return max(before, saved + max(layer, chunk))

    def prompts(self, prompts: int, length: int) -> int:
        """Return the bytes at the peak of a pass without gradient over n prompts of L tokens: those of one layer.

        Neither the keys and values that a rollout keeps nor the logits of the last tokens are counted.
        """
        s, b = self.shape, self.element
        stream = 2 * b * s.width + 4 * s.width  # residual stream, its normalised copy, and that in fp32
        # The activation of the gate, the other factor and the product; with adapters, also the output of one of them.
        mlp = b * (3 if self.rank is None else 4) * s.mlp
        # Queries, output, repeated keys and values. Eager attention: scores, and the softmax's fp32 input and result.
        attention = b * 4 * s.attention_width + (s.heads * length * (b + 8) if self.eager else 0)
        return prompts * length * (stream + max(mlp, attention))

    def _head_saved(self, actions: int) -> int:
        """Return what the head saves: log-softmax and its exponential, or with several chunks its inputs only."""
        if actions <= chunk_positions(self.shape.vocabulary):
            return actions * 8 * self.shape.vocabulary
        return actions * self.element * self.shape.width

    def _cast_weights(self) -> int:
        """Return the size of the 16-bit copies of the trained fp32 weights, which are made in every pass."""
        if self.element == 4:
            return 0
        trained = self.shape.parameters if self.rank is None else self.shape.lora_parameters(self.rank)
        return trained * self.element
