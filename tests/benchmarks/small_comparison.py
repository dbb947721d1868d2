"""A preset whose comparison takes seconds: the tiny model, two arms, one seed, four updates."""

SMALL = """
arms = ["ippo", "marft"]
seeds = 1
updates = 4
episodes = 16
evaluate_every = 2
checkpoint_every = 2
evaluation_items = 16
[tasks.relay.arguments]
dataset = "relay"
style = "symbols"
[settings]
normalization = "sum"
learning_rate = 1e-3
[decoding]
max_new_tokens = 6
"""
