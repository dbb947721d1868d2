"""Programming problems for a team that ends with one program, which is run and tested.

| | |
|---|---|
| import | `marft_envs.code_v0`, or `marft_envs.make('code_v0')`; PettingZoo and Gymnasium: `marft/code-v0` |
| agents | `reasoner_0`, `actor_0` (team "duo"); see `team=` |
| observation | `{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}`, texts |
| action | any text up to the role's `max_chars` |
| reward | 0 until the end; then the team's score, 1 if the program passes every test (or the fraction), to all |
| end | termination when the program is graded; truncation only after a fault of the sandbox or an outside limit |

Arguments
* `dataset`: "list_programs" (default): generated, offline; or real problems: "humaneval", "humanevalplus", "mbpp",
  "livecodebench", "deepcoder", "codeforces", "apps", "code_contests", from `path=`, the folder in the variable
  MARFT_DATA, or the hub.
* `scoring`: "all" tests or nothing (default), or the "fraction" of them.
* `feedback`: what the team is told of its program on the public tests, before another round begins (`rounds=`): the
  "tests" that failed (default), "counts", or "none". Hidden tests are never told.
* `time_limit_s`, `memory_mib`: of each test, where the problem has no limits of its own.
* `sandbox`: where programs run, in place of this process's own sandbox: an object, or the words of a command
  (a container, another machine); see docs/grading.md.
* `allow_unsafe`: run programs even where no sandbox holds; warns each time.
* `team`: "solo", "duo", "trio", "quartet", "octet", each also with "_anonymous"; a .yaml file; or a `marft_envs.Team`.
* `dependency`: D over the team's agents, in place of the team's own; `stop`: when to end before the last round.
* `rounds`, `memory`, `order`, `reward`, `format_bonus`, `max_turns`, `render_mode`, `defer_grading`: see
  `marft_envs.FlexMG`.
* all other arguments go to the data set: `level=`, `style=`, `split=` and `seed=` of the generator.

The program is the last complete code block of the answering agent's own text. It runs in a locked process for each
test (`marft_envs.sandbox`); where no wall holds, it is not run. The expected output never enters that process.

Data: generated problems are made here; HumanEval: MIT; HumanEval+: Apache-2.0; MBPP: CC BY 4.0; LiveCodeBench:
CC BY 4.0; the others: see their pages.

Version history: v0, first version.
"""

from marft_envs.coding.environment import DATASETS, env, raw_env
from marft_envs.coding.teams import TEAMS

__all__ = ["DATASETS", "TEAMS", "env", "raw_env"]
