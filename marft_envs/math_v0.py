"""Mathematics problems for a team that ends with one answer.

| property | value |
|---|---|
| import | `marft_envs.math_v0` or `marft_envs.make('math_v0')`; in PettingZoo and Gymnasium: `marft/math-v0` |
| agents | `reasoner_0`, `actor_0` (team "duo"); see `team=` |
| observation | `{"messages": tuple of {"role", "name", "content"}, "reply_prefix": str}`; all values are strings |
| action | a string of at most the role's `max_chars` characters; a longer one is clipped |
| reward | 0 until the episode ends, then the team's score to all: 1 for a correct answer, else 0; see `reward=` |
| end | terminated when the answer is graded; truncated by a fault of the grader or an outside limit |

Arguments:

* `dataset`: generated problems, which need no download: "word_problems" (default), "one_step", "arithmetic",
  "curriculum", "relay" (every agent has a part of the problem), "report" (every agent answers one section; meant for
  the teams "panel_2", "panel_4" and "panel_8": with another team only the sections of the answering agents are graded).
  Real problems, from `path=`, the folder in the environment variable MARFT_DATA, or the Hugging Face hub: "gsm8k",
  "svamp", "math", "math500", "aime2024", "aime2025", "amc23", "olympiadbench", "minerva_math", "cmath", "deepscaler",
  "numina", or "custom" with `columns=`. Or a `Task`.
* `split`: "train" or "test"; no problem is in both.
* `team`: "solo", "duo", "trio", "quartet", "octet", each also with the suffix "_anonymous"; "duo_guided"; "panel_2",
  "panel_4", "panel_8", each also with the suffix "_guided" for small models; a .yaml file; or a `marft_envs.Team`.
* `dependency`: the dependency function D over the team's agents, in place of the team's own. One of "none", "chain",
  "star", "tree", "layers", "full"; a matrix; edges such as `[("reasoner_0", "actor_0")]`; one of these for each round,
  `{"rounds": [...]}`; a function `(problem, transcript, round) -> D`; or `marft_envs.Orchestrated("reasoner_0")`, with
  which an agent's reply decides who acts (`marft_envs.dependency.orchestration`).
  `print(env.unwrapped.team.dependency)` draws D.
* `stop`: the rule that ends an episode early, in place of the team's own (`marft_envs.team.stop_rules`).
* `rounds`, `memory`, `order`, `reward`, `format_bonus`, `max_turns`, `render_mode`, `defer_grading`: arguments of the
  game. `help(marft_envs.FlexMG)` explains them, and the table of arguments has their values.
* `style`, of "relay" and "report": "symbols" (default) shows each agent only its sum, such as `8+2=`, and is meant for
  the tiny models; "words" explains the task in sentences and is meant for chat models.
* `k`, of "relay": how many numbers each agent has, 2 by default.
* All other arguments are those of the data set: `level=` and `seed=` of the generators; `level=`, `subject=`,
  `max_chars=`, `integer=`, `limit=`, `seed=` of the real problems.

The answer is read from the answering agent's own text: the last \\boxed{}, else `<answer>`, `####` or "answer is", else
the whole text if it is one number. docs/grading.md describes how answers are compared.

Data: the generated problems are part of this package. GSM8K: openai/gsm8k, MIT. SVAMP: Patel et al. 2021, MIT. MATH:
Hendrycks et al. 2021, MIT. The sources and licences of the others are in `marft_envs/mathematics/datasets/specs.py`.

Version history: v0, first version.
"""

from marft_envs.mathematics.environment import DATASETS, env, raw_env
from marft_envs.mathematics.teams import TEAMS

__all__ = ["DATASETS", "TEAMS", "env", "raw_env"]
