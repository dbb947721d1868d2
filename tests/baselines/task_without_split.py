"""A registered task whose constructor has no argument ``split``."""

from marft_envs import Problem, Task, Verdict, register


@register("counting")
class Counting(Task):
    """Reply with the number."""

    size = 4

    def problem(self, index):
        return Problem(index, str(index), str(index))

    def grade(self, answer, problem):
        return Verdict.correct() if answer == problem.gold else Verdict.wrong("another number")
