"""A game of three agents for the tests of D: who acted, and what each of them saw of the others."""

from marft_envs import Problem, Role, Task, Team, Verdict

ABC = ("a_0", "b_0", "c_0")


class Anything(Task):
    name, size = "anything", 1

    def problem(self, index):
        return Problem(index, "Go.", "yes", notes={"secret": 1})

    def grade(self, answer, problem):
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("no")


def play(game, texts):
    """texts: agent -> text or list of texts in turn. Returns (agent, contents of others' messages) for each turn."""
    queues = {a: list(t) if isinstance(t, list) else None for a, t in texts.items()}
    game.reset(seed=0)
    seen = []
    while not game.over:
        agent = game.agent_selection
        messages = game.observe(agent)["messages"]
        seen.append((agent, tuple(m["content"] for m in messages if m["name"] not in ("task", agent))))
        game.step(queues[agent].pop(0) if queues[agent] is not None else texts[agent])
    return seen


def team(dependency, **keywords):
    return Team({a: Role(answers=a == "c_0") for a in ABC}, dependency, **keywords)


TEXTS = {a: a.upper() for a in ABC}
