"""A task whose correct answer is "yes", and a function that starts a game of it, for tests of roles and teams."""

from marft_envs import FlexMG, Problem, Task, Team, Verdict


class Yes(Task):
    """One problem, whose correct answer is "yes"."""

    name, size = "yes", 1

    def problem(self, index):
        return Problem(index, "Say yes.", "yes")

    def grade(self, answer, problem):
        if not answer:
            return Verdict.no_answer("empty")
        return Verdict.correct() if answer == "yes" else Verdict.wrong("no")


def game(roles, dependency="chain", stop=None, **arguments):
    """Return a game of ``Yes`` after its reset."""
    made = FlexMG(Yes(), Team(roles, dependency, stop), **arguments)
    made.reset(seed=0)
    return made


def call(expression):
    """Return a call of the calculator."""
    return f'<tool_call>{{"name": "calculator", "arguments": {{"expression": "{expression}"}}}}</tool_call>'
