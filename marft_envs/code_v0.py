"""Programming problems for a team that ends with one program, which is run and tested.

| property | value |
|---|---|
| import | `marft_envs.code_v0` or `marft_envs.make('code_v0')`; in PettingZoo and Gymnasium: `marft/code-v0` |
| agents | `reasoner_0`, `actor_0` (team "duo"); see `team=` |
| observation | `{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}`; all values are strings |
| action | a string of at most the role's `max_chars` characters; a longer one is clipped |
| reward | 0 until the episode ends, then the team's score: 1 if all tests pass, else 0; see `scoring=`, `reward=` |
| end | terminated when the program is graded; truncated by a fault of the sandbox or an outside limit |

Arguments:

* `dataset`: "list_programs" (default): generated problems, which need no download. Real problems, from `path=`, the
  folder in the environment variable MARFT_DATA, or the Hugging Face hub: "humaneval", "humanevalplus", "mbpp",
  "livecodebench", "deepcoder", "codeforces", "apps", "code_contests". Or a `Task`.
* `scoring`: "all", the program must pass all tests (default); or "fraction", the score is the fraction that it passes.
* `feedback`: with several rounds (`rounds=`), the result of the public tests that the team reads before the next round:
  the failed "tests" (default), their "counts", or "none". Results of hidden tests are never shown.
* `time_limit_s`, `memory_mib`: the limits of each test, if the problem has none of its own.
* `sandbox`: what runs the programs in place of the built-in sandbox: an object, or a command as a list of words (for
  example one that runs them in a container or on another machine); see docs/grading.md.
* `allow_unsafe`: run programs even if no sandbox is available; each run warns.
* `team`: "solo", "duo", "trio", "quartet", "octet", each also with the suffix "_anonymous"; a .yaml file; or a
  `marft_envs.Team`.
* `dependency`, `stop`: the dependency function D and the stop rule, in place of the team's own; see
  `marft_envs.math_v0`.
* `rounds`, `memory`, `order`, `reward`, `format_bonus`, `max_turns`, `render_mode`, `defer_grading`: arguments of the
  game. `help(marft_envs.FlexMG)` explains them, and the table of arguments has their values.
* All other arguments are those of the data set: `level=`, `style=`, `split=` and `seed=` of the generator; `split=` (by
  default "test"), `seed=`, `limit=`, `part=`, `since=`, `until=`, `release=` of the real problems.

The program is the last complete code block of the answering agent's own text. Each test runs it in an isolated process
(`marft_envs.sandbox`), which never contains the expected output. Without isolation, the program is not run.

Data: the generated problems are part of this package. HumanEval: MIT. HumanEval+: Apache-2.0. MBPP: CC BY 4.0.
LiveCodeBench: CC BY 4.0. See the pages of the others for their licences.

Version history: v0, first version.
"""

from marft_envs.coding.environment import DATASETS, env, raw_env
from marft_envs.coding.teams import TEAMS

__all__ = ["DATASETS", "TEAMS", "env", "raw_env"]
