"""A task, a team of three agents and a function that plays them, for tests of the game."""

from marft_envs import Problem, Role, Task, Team, Verdict

ABC = ("a_0", "b_0", "c_0")
WORDS = {agent: f"text of {agent}" for agent in ABC}


class Echo(Task):
    """Problems whose answer is ``gold``, with a private part for each agent; "crash" makes the grader fail."""

    name, size = "echo", 3

    def __init__(self, gold="yes"):
        self.gold = gold

    def problem(self, index):
        return Problem(index, f"Question {index}", self.gold, {a: f"secret of {a}" for a in ABC}, {"note": "gold: yes"})

    def grade(self, answer, problem):
        if answer == "crash":
            raise OSError("disk full")
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("not the word")


def team(dependency="chain", **roles):
    """Return a team of three agents; ``roles`` replaces the roles of some of them."""
    return Team({a: roles.get(a, Role(f"You are {a}.")) for a in ABC}, dependency)


def play(env, texts, **reset):
    """Play a whole episode with ``agent_iter`` and return (agent, observation) for each turn.

    Args:
        env: The environment.
        texts: For each agent its action, or a function of (agent, number of the turn from 1).
        reset: Arguments of ``env.reset``.
    """
    env.reset(**{"seed": 0, **reset})
    seen = []
    for agent in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            env.step(None)
            continue
        seen.append((agent, observation))
        env.step(texts[agent] if isinstance(texts, dict) else texts(agent, len(seen)))
    return seen


def contents(observation):
    """Return the contents of an observation's messages."""
    return [m["content"] for m in observation["messages"]]
