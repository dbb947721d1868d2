"""Passes that fit a memory budget, and the answer to an exhausted memory."""

import pytest
import torch

from baselines.ladder import arm
from baselines.models.out_of_memory import is_out_of_memory
from baselines.policies.micro_batches import MemoryExhausted, MicroBatches, PassLimits, in_order, pass_memory
from baselines.policies.policy import SharedBasePolicy
from baselines.ppo.learner import Credit, Learner
from tests.baselines.turns import turns_of

ALLOCATOR = (
    "[enforce fail at alloc_cpu.cpp:124] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"
)


REPLY = 6  # tokens of every action


def random_turns(prompts):
    """Return turns of one agent with prompts of these lengths."""
    generator = torch.Generator().manual_seed(1)
    return turns_of([torch.randint(8, (length + REPLY,), generator=generator).tolist() for length in prompts], REPLY)


PROMPTS = [40, 3, 12, 3, 39, 12, 5, 44, 3, 11]


def limits_for(policy, turns, length, **other):
    """Return limits whose budget is exactly that of this pass."""
    size = pass_memory(policy).peak(turns, length + REPLY, turns * REPLY, checkpointing=False)
    return PassLimits(gib=size / 2**30, **other)


def test_passes_cover_every_turn_once_fit_the_budget_and_hold_turns_of_similar_length(duo):
    turns, memory = random_turns(PROMPTS), pass_memory(duo.policy)
    passes = MicroBatches(limits_for(duo.policy, 3, 44))
    micro_batches = list(passes.split(duo.policy, turns))
    rows = [micro_batch.rows.tolist() for micro_batch in micro_batches]
    assert sorted(row for own in rows for row in own) == list(range(10))
    assert rows[0] == [0, 4, 7]  # the three longest, in their own order
    assert not any(micro_batch.checkpointing for micro_batch in micro_batches)
    for own in rows:
        longest = max(PROMPTS[i] for i in own) + REPLY
        assert memory.peak(len(own), longest, len(own) * REPLY, checkpointing=False) <= passes.budget
    padded = sum(len(own) * (max(PROMPTS[i] for i in own) + REPLY) for own in rows)
    assert padded < 1.25 * (
        sum(PROMPTS) + 10 * REPLY
    )  # three by three in the order of the batch, it would be 1.9 times


def test_turns_that_fit_one_pass_keep_their_order(duo):
    (only,) = MicroBatches().split(duo.policy, random_turns(PROMPTS))
    assert only.rows.tolist() == list(range(10))


def test_the_number_of_turns_has_a_limit_of_its_own(duo):
    micro_batches = MicroBatches(PassLimits(turns=4)).split(duo.policy, random_turns(PROMPTS))
    assert [len(micro_batch.rows) for micro_batch in micro_batches] == [4, 4, 2]


def test_log_probabilities_are_in_the_order_of_the_turns_whatever_the_passes(duo):
    learner = Learner(duo.policy, arm("ippo"), temperature=1.0, seed=0)
    turns = random_turns(PROMPTS)
    whole = learner.actor.token_logprobs("actor_0", turns)
    learner.actor.passes = MicroBatches(PassLimits(turns=3))
    torch.testing.assert_close(learner.actor.token_logprobs("actor_0", turns), whole, rtol=1e-5, atol=1e-5)


def test_in_order_undoes_the_division():
    rows = [torch.tensor([1, 4]), torch.tensor([0, 2, 3])]
    torch.testing.assert_close(in_order(rows, [own * 10.0 for own in rows]), torch.arange(5) * 10.0)


# ---- gradient checkpointing


@pytest.mark.parametrize(("setting", "expected"), [("off", [False]), ("on", [True]), ("auto", [True, False])])
def test_auto_checkpoints_the_turns_of_which_one_alone_would_not_fit(duo, setting, expected):
    turns = random_turns([400, 3, 4, 5])
    limits = limits_for(duo.policy, 1, 200, checkpointing=setting)
    found = [micro_batch.checkpointing for micro_batch in MicroBatches(limits).split(duo.policy, turns)]
    assert sorted(set(found), reverse=True) == expected
    assert found[0] == (setting != "off")  # the longest turn comes first


# ---- exhausted memory


class Exhausted:
    """The head fails for more than ``most`` turns. The first ``spared`` passes succeed, so there are gradients then."""

    def __init__(self, monkeypatch, most, error, spared=1):
        self.error, self.sizes = error, []
        original = SharedBasePolicy.token_scores

        def token_scores(policy, hidden, turns, temperature):
            scores = original(policy, hidden, turns, temperature)
            self.sizes.append(len(hidden))
            if len(hidden) > most and len(self.sizes) > spared:
                raise self.error
            return scores

        monkeypatch.setattr(SharedBasePolicy, "token_scores", token_scores)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError(ALLOCATOR)])
def test_an_exhausted_memory_is_answered_by_smaller_passes_with_the_same_gradient(duo, monkeypatch, caplog, error):
    def trained(turns, fails):
        learner = Learner(duo.policy, arm("ippo"), temperature=1.0, seed=0, limits=PassLimits(turns=turns))
        data, _ = learner._agent_data(duo.batch, "actor_0", *_read(learner, duo.batch))
        with duo.policy.use("actor_0"), monkeypatch.context() as patch:
            fake = Exhausted(patch, 6 if fails else 128, error)
            stats = learner.actor._accumulate("actor_0", data, torch.arange(len(data.turns)))
        gradient = torch.cat([p.grad.flatten() for p in duo.policy.adapter_parameters("actor_0")])
        learner.actor.optimizers["actor_0"].zero_grad(set_to_none=True)
        return learner, stats, gradient, fake.sizes

    _, stats, whole, _ = trained(128, fails=False)
    learner, after, gradient, sizes = trained(11, fails=True)
    assert sizes[:2] == [11, 11] and max(sizes[2:]) <= 6  # the second pass fails after the gradients of the first
    assert learner.passes.out_of_memory == 1
    assert whole.norm() > 1e-4
    torch.testing.assert_close(gradient, whole, rtol=1e-4, atol=1e-6)
    assert after == pytest.approx(stats, rel=1e-4, abs=1e-6)
    assert "out of memory in a pass of 11 turns" in caplog.text
    assert learner.actor.counts["trained_tokens"] == int(duo.batch.turns["actor_0"].action_mask.sum())


def _read(learner, batch):
    """Return old log-probabilities, reference and made-up advantages of the second agent."""
    old = learner.actor.token_logprobs("actor_0", batch.turns["actor_0"])
    advantages = torch.linspace(-1, 1, batch.mask.numel()).reshape(*batch.mask.shape, 1)
    credit = Credit(advantages, advantages, advantages, torch.ones(len(batch.mask), dtype=torch.bool))
    return old + 0.1, old - 0.1, credit


def test_reading_the_batch_is_repeated_too_and_an_update_counts_it(duo, monkeypatch):
    plain = Learner(duo.policy, arm("marft"), temperature=1.0, seed=0)
    features, reference = plain._read(duo.batch)
    learner = Learner(duo.policy, arm("marft"), temperature=1.0, seed=0)
    Exhausted(monkeypatch, 9, RuntimeError(ALLOCATOR))
    found, logprobs = learner._read(duo.batch)
    assert learner.passes.out_of_memory > 0
    torch.testing.assert_close(found.message, features.message, rtol=1e-4, atol=1e-4)
    for agent in duo.policy.agents:
        torch.testing.assert_close(logprobs[agent], reference[agent], rtol=1e-5, atol=1e-5)
    metrics = learner.update(duo.batch)
    assert metrics["out_of_memory"] == learner.passes.out_of_memory
    assert metrics["agents"]["actor_0"]["steps"] > 0


def test_a_single_turn_that_does_not_fit_ends_the_run_with_its_length(duo, monkeypatch):
    learner = Learner(duo.policy, arm("ippo"), temperature=1.0, seed=0)
    Exhausted(monkeypatch, 0, torch.OutOfMemoryError("CUDA out of memory"), spared=0)
    length = int(duo.batch.turns["actor_0"].token_mask.sum(-1).max())
    with pytest.raises(MemoryExhausted, match=rf"a single turn of {length} tokens .*CUDA out of memory.*: expected"):
        learner.actor.token_logprobs("actor_0", duo.batch.turns["actor_0"])


def test_a_single_turn_of_a_model_that_cannot_checkpoint_ends_the_run_too(duo, monkeypatch):
    learner = Learner(duo.policy, arm("ippo"), temperature=1.0, seed=0)
    monkeypatch.setattr(MicroBatches, "_can_checkpoint", lambda passes, policy: False)
    fake = Exhausted(monkeypatch, 0, torch.OutOfMemoryError("CUDA out of memory"), spared=0)
    original = learner.passes._halve

    def halve(reason):
        assert len(fake.sizes) < 50, "the same pass is tried again and again"
        original(reason)

    monkeypatch.setattr(learner.passes, "_halve", halve)
    with pytest.raises(MemoryExhausted, match=r"a single turn of \d+ tokens .*: expected more memory") as found:
        learner.actor.token_logprobs("actor_0", duo.batch.turns["actor_0"])
    assert "gradient_checkpointing" not in str(found.value)  # it is "auto" already


def test_an_exhausted_memory_before_the_first_pass_ends_the_run_too(duo):
    """Passes of an earlier batch say nothing about it, and smaller passes would not help."""
    passes, calls = MicroBatches(), []
    list(passes.split(duo.policy, random_turns(PROMPTS)))

    def work():
        calls.append(1)
        assert len(calls) < 50, "the same work is tried again and again"
        raise RuntimeError(ALLOCATOR)

    with pytest.raises(MemoryExhausted, match=r"before the first pass .*DefaultCPUAllocator.*: expected more memory"):
        passes.repeat(work)
    assert len(calls) == 1 and passes.out_of_memory == 0


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_the_cache_of_any_accelerator_is_emptied(duo, monkeypatch, device):
    emptied = []
    monkeypatch.setattr(getattr(torch, device), "empty_cache", lambda: emptied.append(device))
    passes = MicroBatches()
    list(passes.split(duo.policy, random_turns(PROMPTS)))
    passes._device = device
    passes._halve("out of memory")
    assert emptied == [device]


def test_cublas_without_memory_is_an_exhausted_memory():
    cublas = RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    assert is_out_of_memory(cublas) and not is_out_of_memory(RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED"))


def test_other_errors_are_no_exhausted_memory(duo):
    passes = MicroBatches()

    def work():
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match=r"^shapes differ$"):
        passes.repeat(work)
    assert passes.out_of_memory == 0


def test_a_smaller_budget_is_kept_in_the_checkpoint_for_the_same_limit(duo):
    passes = MicroBatches()
    list(passes.split(duo.policy, random_turns(PROMPTS)))
    passes.budget, passes.out_of_memory = 1000, 2
    same, other = MicroBatches(), MicroBatches(PassLimits(gib=1.0))
    for resumed in (same, other):
        resumed.load_state_dict(passes.state_dict())
    assert (same.budget, same.out_of_memory) == (1000, 2)
    assert (other.budget, other.out_of_memory) == (2**30, 2)
