"""Each adapter has its own parameters, also if its name occurs in other parameter names."""

import pytest

from baselines.models.load import load_model
from baselines.policies.policy import LoraSettings, SharedBasePolicy

AGENTS = ("reasoner_0", "actor_0")


def team(name):
    return SharedBasePolicy(load_model("tiny").model, AGENTS, LoraSettings(), 0, sharing={"reasoner_0": name})


@pytest.mark.parametrize("name", ["model", "layers", "0", "lora_A", "weight", "default"])
def test_an_adapter_named_like_a_module_gets_no_other_parameter(name):
    policy = team(name)
    mine, others = policy.adapter_parameters("reasoner_0"), policy.adapter_parameters("actor_0")
    assert len(mine) == len(others) and not {id(p) for p in mine} & {id(p) for p in others}
    assert sum(p.requires_grad for p in policy.weights.parameters()) == len(mine) + len(others)


@pytest.mark.parametrize("name", ["a.b", "", "a/b", ".."])
def test_a_name_that_cannot_be_an_adapters_is_refused(name):
    with pytest.raises(ValueError, match=r"adapter '.*' of agent 'reasoner_0': expected letters"):
        team(name)
