"""Mathematics problems for a team that ends with one answer.

| | |
|---|---|
| import | `marft_envs.math_v0`, or `marft_envs.make('math_v0')`; PettingZoo and Gymnasium: `marft/math-v0` |
| agents | `reasoner_0`, `actor_0` (team "duo"); see `team=` |
| observation | `{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}`, texts |
| action | any text up to the role's `max_chars` |
| reward | 0 until the end; then the team's score, 1 for a right answer and 0 otherwise, to every agent; see `reward=` |
| end | termination when the answer is graded; truncation only after a fault of the grader or an outside limit |

Arguments
* `dataset`: generated, offline: "word_problems" (default), "one_step", "arithmetic", "curriculum", "relay" (nobody can
  succeed alone), "report" (a section each; team "panel_2", "panel_4" or "panel_8"). Real problems, from `path=`, the
  folder in the variable MARFT_DATA, or the hub: "gsm8k", "svamp", "math", "math500", "aime2024", "aime2025", "amc23",
  "olympiadbench", "minerva_math", "cmath", "deepscaler", "numina", or "custom" with `columns=`. Or a `Task`.
* `split`: "train" or "test"; they share no problem.
* `team`: "solo", "duo", "trio", "quartet", "octet", each also with "_anonymous"; "duo_guided"; "panel_2",
  "panel_4", "panel_8"; a .yaml file; or a `marft_envs.Team`.
* `dependency`: D over the team's agents, in place of the team's own: "none", "chain", "star", "tree", "layers", "full",
  a matrix, edges such as `[("reasoner_0", "actor_0")]`, one of these for each round (`{"rounds": [...]}`), a function
  `(problem, transcript, round) -> D`, or `marft_envs.Orchestrated("reasoner_0")`, where an agent's reply names who acts
  (`marft_envs.dependency.orchestration`). `print(env.unwrapped.team.dependency)` shows who sees whom.
* `stop`: when to end before the last round, in place of the team's own rule (`marft_envs.team.stop_rules`).
* `rounds`, `memory`, `order`, `reward`, `format_bonus`, `max_turns`, `render_mode`, `defer_grading`: see
  `marft_envs.FlexMG`.
* all other arguments go to the data set: `level=` and `seed=` of the generators, `k=` and `style=` of the relay,
  `style=` of the report, `level=`, `subject=`, `max_chars=`, `integer=`, `limit=`, `seed=` of the real ones.

The answer is read from the answering agent's own text: the last \\boxed{}, then `<answer>`, `####`, "answer is"; or it
is the whole text where that is one number. How answers are compared: docs/grading.md.

Data: generated problems are made here. GSM8K: openai/gsm8k, MIT. SVAMP: Patel et al. 2021, MIT. MATH: Hendrycks et al.
2021, MIT. The others: see the names and licences in `marft_envs/mathematics/datasets/specs.py`.

Version history: v0, first version.
"""

from marft_envs.mathematics.environment import DATASETS, env, raw_env
from marft_envs.mathematics.teams import TEAMS

__all__ = ["DATASETS", "TEAMS", "env", "raw_env"]
