"""Critics: what each value depends on, the gate on lam_in, and learning."""

from dataclasses import fields, replace

import pytest
import torch

from baselines.critics.critic import TeamCritic, visible_turns
from baselines.critics.features import MESSAGE_STATES, TurnFeatures
from baselines.critics.token_statistics import MESSAGE_STATISTICS, RUNNING_STATISTICS
from baselines.functional.losses import explained_variance
from baselines.ladder import arm

H, B, K = 8, 512, 4


def features(seed=0):
    """Return features of one round of turns a, b, a, b, whose target depends on the message of the second turn only."""
    g = torch.Generator().manual_seed(seed)
    message = torch.randn(B, K, MESSAGE_STATES * H + MESSAGE_STATISTICS, generator=g)
    good = torch.rand(B, generator=g) < 0.5
    message[:, 1, -1] = good.float() * 4 - 2
    return TurnFeatures(
        prompt=torch.randn(B, K, H, generator=g),
        message=message,
        mask=torch.ones(B, K, dtype=torch.bool),
        agent=torch.tensor([0, 1, 0, 1]).expand(B, K),
        round=torch.zeros(B, K, dtype=torch.long),
        target=good.float().unsqueeze(-1).expand(B, K),
        decisions=torch.ones(B, K, 1, dtype=torch.bool),
    )


def critic(name="marft", **settings):
    return TeamCritic((H,), (0, 0), arm(name).with_settings(settings), seed=0)


def test_inputs_are_standardised_by_the_first_batch_in_which_an_agent_acts():
    """Agent b does not act in the first batch. Its network is fitted by the second batch, and never again."""
    c, f = critic("ippo"), features()
    scored = torch.ones(B, K, dtype=torch.bool)
    c.start(replace(f, mask=f.agent == 0), scored & (f.agent == 0))
    first, late = (network.phi["0"] for network in c.networks)
    assert bool(first.fitted) and not bool(late.fitted)
    center = first.center.clone()
    c.start(f, scored)
    assert bool(late.fitted) and torch.equal(first.center, center)
    fitted = late.center.clone()
    c.start(features(seed=1), scored)
    assert torch.equal(late.center, fitted)


def test_visible_turns():
    mask = torch.tensor([[True, True, True, False]])
    assert visible_turns(mask)[0].int().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]


@pytest.mark.parametrize(
    ("name", "moved"),
    [
        ("marft", [False, False, True, True]),
        ("ippo", [False, False, False, True]),
    ],  # central: all earlier turns; own: b's own earlier turn
)
def test_a_value_depends_on_earlier_turns_only(name, moved):
    c, f = critic(name), features()
    before = c.values(f)
    changed = f.message.clone()
    changed[:, 1] += 1.0
    after = c.values(replace(f, message=changed))
    assert [bool((after[:, k] != before[:, k]).any()) for k in range(K)] == moved


@pytest.mark.parametrize("replaced", [True, False], ids=["the last version counts", "all versions count"])
def test_it_learns_the_weight_of_messages_of_earlier_rounds(replaced):
    """Turns a, b in round 0 and a, b in round 1. The last value must weigh the messages of a in both rounds."""
    g = torch.Generator().manual_seed(3)
    first, last = (torch.rand(2, B, generator=g) < 0.5).float()
    message = torch.zeros_like(features().message)
    message[:, 0, -1], message[:, 2, -1] = first * 4 - 2, last * 4 - 2
    target = (last if replaced else (first + last) / 2).unsqueeze(-1).expand(B, K)
    rounds = torch.tensor([0, 0, 1, 1]).expand(B, K)
    f = replace(features(), message=message, prompt=torch.zeros(B, K, H), round=rounds, target=target)
    c = critic(critic_learning_rate=1e-2)
    for _ in range(60):
        c.train(f, c.values(f), c.values(f), 1)
        c.replay.clear()
    assert explained_variance(c.values(f)[:, 3, 0], target[:, 3]) > 0.8


def test_a_value_depends_on_its_own_episode_alone():
    """Also if other episodes of the batch have several rounds and this one has one."""
    f, c = features(), critic()
    one_round = replace(f, mask=f.mask.clone())
    one_round.mask[: B // 2, 2:] = False
    rounds = torch.tensor([0, 0, 1, 1]).expand(B, K).clone()
    both = replace(one_round, round=rounds)
    with torch.no_grad():
        c.networks[0].counts += 0.1
    c.values(both)  # now the critic has read a second round
    mine = {field.name: getattr(both, field.name) for field in fields(both)}
    alone = TurnFeatures(**{name: None if x is None else x[: B // 2] for name, x in mine.items()})
    alone = replace(alone, round=torch.zeros_like(alone.round))
    assert torch.allclose(c.values(alone)[:, :2], c.values(both)[: B // 2, :2], atol=1e-6)


def test_each_base_model_has_its_own_networks():
    """Turns a, b, a, b; a is on base 0 (width H), b on base 1 (width 2 H)."""
    c, f = TeamCritic((H, 2 * H), (0, 1), arm("marft"), seed=0), features()
    g = torch.Generator().manual_seed(1)
    wide = replace(
        f,
        prompt=torch.randn(B, K, 2 * H, generator=g),
        message=torch.randn(B, K, MESSAGE_STATES * 2 * H + MESSAGE_STATISTICS, generator=g),
    )
    before = c.values(wide)

    def changed(values):
        return [bool((values[:, k] != before[:, k]).any()) for k in range(K)]

    unread = wide.prompt.clone()
    unread[:, 0::2, H:] += 1.0  # columns that base 0 does not fill
    assert changed(c.values(replace(wide, prompt=unread))) == [False] * 4
    unread[:, 1, H:] += 1.0
    assert changed(c.values(replace(wide, prompt=unread))) == [False, True, False, False]
    with torch.no_grad():
        c.networks[0].phi["1"].outer.bias += 1.0  # the contribution of b's messages
    assert changed(c.values(wide)) == [False, False, True, True]
    own = TeamCritic((H, 2 * H), (0, 1), arm("ippo"), seed=0)
    assert [list(network.phi) for network in own.networks] == [["0"], ["1"]]


@pytest.mark.parametrize("name", ["marft", "ippo", "marft_token"])
def test_a_transformer_reads_the_tokens_before_a_decision(name):
    """Nine tokens, four of them before the action: a value changes with the tokens before it and no other."""
    c = TeamCritic((30,), (0, 0), arm(name).with_settings({"critic_network": "transformer"}), seed=0)
    g = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in c.networks.parameters():
            p += 0.1 * torch.randn(p.shape, generator=g)
    decisions = torch.ones(B, K, 3 if name == "marft_token" else 1, dtype=torch.bool)
    f = replace(features(), decisions=decisions, history=torch.randint(30, (B, K, 9), generator=g),
                length=torch.full((B, K), 4))  # fmt: skip
    before = c.values(f)
    for column in range(9):
        history = f.history.clone()
        history[..., column] = (history[..., column] + 1) % 30
        moved = (c.values(replace(f, history=history)) != before).any(0).any(0).tolist()
        assert moved == [column < 4 + j for j in range(decisions.shape[-1])]


def test_each_own_critic_has_the_size_of_the_central_one():
    sizes = {
        name: [sum(p.numel() for p in network.parameters()) for network in critic(name).networks]
        for name in ("marft", "ippo")
    }
    assert len(sizes["ippo"]) == 2 and sizes["ippo"] == sizes["marft"] * 2


def test_the_first_value_is_the_success_rate():
    f, c = features(), critic()
    c.start(f, f.mask)
    values = c.values(f)
    assert float(values.mean()) == pytest.approx(float(f.target.mean()), abs=0.1)
    assert float(values.min()) >= 0 and float(values.max()) <= 1


@pytest.mark.parametrize("value_loss", ["bce", pytest.param("huber", marks=pytest.mark.slow)])
def test_it_learns_which_message_was_good_and_explained_variance_rises_after_it(value_loss):
    c = critic(value_loss=value_loss, value_clip=10.0)
    position = torch.tensor([0, 1, 0, 1]).expand(B, K)
    for seed in range(20):
        f = features(seed)
        c.train(f, c.values(f), f.target.unsqueeze(-1), 4)
    fresh = features(seed=99)
    values = c.values(fresh)
    ev = [1 - float((fresh.target[:, k] - values[:, k, 0]).var() / fresh.target[:, k].var()) for k in range(K)]
    assert max(ev[0], ev[1]) < 0.2 < 0.5 < min(ev[2], ev[3])
    by_position = c.observe_explained_variance(values, fresh, position)
    assert set(by_position) == {"1", "2"}


def test_the_gate_opens_at_the_running_explained_variance():
    c, f = critic(lam_in=0.5, ev_gate=0.1), features()
    position = torch.tensor([0, 1, 2, 3]).expand(B, K)
    assert c.lam_in() == 1.0
    c.observe_explained_variance(torch.full((B, K, 1), 0.5), f, position)  # explains nothing
    assert c.running_ev == pytest.approx(0.0) and c.lam_in() == 1.0
    c.observe_explained_variance(f.target.unsqueeze(-1), f, position)  # explains everything: .8 * 0 + .2 * 1
    assert c.running_ev == pytest.approx(0.2) and c.lam_in() == 0.5


def test_replay_keeps_the_last_batches():
    c = critic(replay_batches=3)
    for seed in range(5):
        f = features(seed)
        c.train(f, c.values(f), f.target.unsqueeze(-1), 1)
    assert len(c.replay) == 3 and torch.equal(c.replay[-1][0].message, features(4).message)


def token_features():
    g = torch.Generator().manual_seed(2)
    within = torch.randn(B, K, 3, H + RUNNING_STATISTICS, generator=g)
    return replace(features(), decisions=torch.ones(B, K, 3, dtype=torch.bool), within=within)


@pytest.mark.parametrize("network", ["additive", "head"])
def test_values_and_gradients_are_computed_on_the_device_of_the_inputs(network):
    """On the meta device, an operation with a tensor of the CPU is an error."""
    config = arm("marft_token").with_settings({"critic_network": network})
    c = TeamCritic(
        (H, H),
        (0, 1),
        config if network == "additive" else replace(config, critic="own", bootstrap="own"),
        seed=0,
        device="meta",
    )
    f = token_features().to(torch.device("meta"))
    logits = c.networks[0](f, visible_turns(f.mask))
    logits.sum().backward()
    assert logits.device.type == "meta" and logits.shape == (B, K, 3)
    assert all(b.device.type == "meta" for b in c.networks.buffers())


def test_each_state_of_a_message_is_normalised_on_its_own():
    """Scaling one of the states, or a missing one, must not change what the network reads of the others."""
    c, f = critic(), features()
    scaled = f.message.clone()
    scaled[..., :H] *= 50.0
    assert torch.allclose(c.values(f), c.values(replace(f, message=scaled)), atol=1e-4)


def test_a_checkpoint_without_the_bases_of_the_agents_can_be_loaded():
    """The configuration says which base reads an agent's turns, so it is no part of a checkpoint."""
    names = critic().state_dict()["networks"]
    assert not any("base_of" in name for name in names)


def test_it_learns_from_what_distinguishes_messages_that_are_nearly_the_same():
    """The states have a large part in common, and the state of a good message differs by 1 % of it."""
    c, common = critic(), 10 * torch.randn(MESSAGE_STATES * H, generator=torch.Generator().manual_seed(5))

    def batch(seed):
        f = features(seed)
        message = f.message.clone()
        states = message[..., : MESSAGE_STATES * H]
        states *= 0.01
        states[:, 1, H : 2 * H] += 0.05 * f.message[:, 1, -1:] * torch.linspace(-1, 1, H)
        states += common
        message[..., MESSAGE_STATES * H :] = 0.0
        return replace(f, message=message)

    for seed in range(10):
        f = batch(seed)
        c.start(f, f.mask)
        c.train(f, c.values(f), f.target.unsqueeze(-1), 2)
    fresh = batch(99)
    assert explained_variance(c.values(fresh)[:, 3, 0], fresh.target[:, 3]) > 0.5


def test_the_columns_of_a_wide_base_model_are_not_fitted_to_noise():
    """4,608 state columns without information beside one informative number, in 4 batches of 64 episodes."""
    wide, config = 768, arm("marft").with_settings({"critic_epochs": 4})
    c = TeamCritic((wide,), (0, 0), config, seed=0)

    def batch(seed, episodes):
        f, g = features(seed), torch.Generator().manual_seed(100 + seed)
        message = torch.randn(episodes, K, MESSAGE_STATES * wide + MESSAGE_STATISTICS, generator=g)
        message[:, 1, -1] = f.message[:episodes, 1, -1]
        f = TurnFeatures(**{x.name: None if (v := getattr(f, x.name)) is None else v[:episodes] for x in fields(f)})
        return replace(f, message=message, prompt=torch.zeros(episodes, K, wide))

    for seed in range(4):
        f = batch(seed, 64)
        c.start(f, f.mask)
        c.train(f, c.values(f), f.target.unsqueeze(-1), 4)
    fresh = batch(99, 256)
    assert explained_variance(c.values(fresh)[:, 3, 0], fresh.target[:, 3]) > 0.0
