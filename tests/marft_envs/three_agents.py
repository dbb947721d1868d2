"""A task, a team of three agents and a function that plays them, for tests of the dependency function."""

from marft_envs import Problem, Role, Task, Team, Verdict

ABC = ("a_0", "b_0", "c_0")
TEXTS = {agent: agent.upper() for agent in ABC}


class Anything(Task):
    """One problem, whose correct answer is "yes"."""

    name, size = "anything", 1

    def problem(self, index):
        return Problem(index, "Go.", "yes", notes={"secret": 1})

    def grade(self, answer, problem):
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")


def play(game, texts):
    """Play an episode and return, for each turn, (agent, the messages of other agents that it saw).

    Args:
        game: A FlexMG.
        texts: For each agent the action of every turn, or a list of one action per turn.
    """
    queues = {agent: list(text) if isinstance(text, list) else None for agent, text in texts.items()}
    game.reset(seed=0)
    seen = []
    while not game.over:
        agent = game.agent_selection
        messages = game.observe(agent)["messages"]
        seen.append((agent, tuple(m["content"] for m in messages if m["name"] not in ("task", agent))))
        game.step(queues[agent].pop(0) if queues[agent] is not None else texts[agent])
    return seen


def team(dependency, **arguments):
    """Return a team of three agents, of which c_0 answers."""
    return Team({agent: Role(answers=agent == "c_0") for agent in ABC}, dependency, **arguments)
