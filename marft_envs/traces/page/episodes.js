"use strict";

/*
 * The episode browser. Its data is a list of groups: {task, arm, seed, update, mode, header, episodes}, where header
 * and episodes are those of a trace (docs/traces.md). A group of `python -m marft_envs show` has a task only.
 */

const VERDICTS = {
  correct: "✓ correct", wrong: "✗ wrong", partial: "◐ partial", no_answer: "∅ no answer",
  not_graded: "? not graded",
};
const LISTED = 500; // problems that are listed at first: a list of thousands takes a browser long to draw
const FIELDS = { arm: "Arm", seed: "Seed", update: "Update", mode: "Decoding" };

/** Return the verdict of the whole team, a key of VERDICTS. */
function verdictOf(episode) {
  if (episode.not_graded || episode.score === null) return "not_graded";
  const outcomes = Object.values(episode.verdicts).map((verdict) => verdict.outcome);
  if (episode.score >= 1) return "correct";
  if (episode.score > 0) return "partial";
  return outcomes.length && outcomes.every((outcome) => outcome === "no_answer") ? "no_answer" : "wrong";
}

/** Return all text of an episode in lower case, for the search. */
function searchText(episode) {
  return [episode.prompt, ...Object.values(episode.private), ...episode.turns.map((turn) => turn.text)]
    .join("\n").toLowerCase();
}

/** Return a number with at most `digits` decimals and a real minus sign. */
function figure(value, digits = 2, sign = false) {
  const text = Math.abs(value).toFixed(digits);
  const zero = Number(text) === 0;
  return (zero ? "" : value < 0 ? "−" : sign ? "+" : "") + text;
}

/** Return the mean of a number or a list of them; undefined of nothing. */
function average(value) {
  if (!Array.isArray(value)) return value;
  return value.length ? value.reduce((sum, each) => sum + each, 0) / value.length : undefined;
}

class EpisodeBrowser {
  constructor(root, groups) {
    this.root = root;
    this.groups = groups;
    this.sides = [{}, null]; // what each panel shows: field -> value; null: there is no second panel
    this.build();
    this.chooseTask();
  }

  // ---- controls

  build() {
    const tasks = [...new Set(this.groups.map((group) => group.task))];
    this.task = this.select("Task", tasks, () => this.chooseTask());
    this.controls = [make("div", { className: "controls" }), make("div", { className: "controls" })];
    this.search = make("input", { type: "search", id: "episode-search" });
    this.search.addEventListener("input", () => this.list());
    this.wanted = this.select("Verdict", ["all", ...Object.keys(VERDICTS)], () => this.list());
    this.problems = make("select", { size: 12, id: "episode-list", "aria-label": "Problems" });
    this.problems.addEventListener("change", () => this.show());
    this.count = make("small", { role: "status" });
    this.all = make("button", { type: "button", textContent: "List all" });
    this.all.addEventListener("click", () => this.list(Infinity));
    this.tokens = make("input", { type: "checkbox", id: "episode-tokens" });
    this.tokens.addEventListener("change", () => this.show());
    this.panels = make("div", { className: "panels" });
    const several = this.groups.length > 1;
    this.presets = make("div", { className: "controls", role: "group", "aria-label": "Compare" });
    for (const [words, choose] of Object.entries({
      "One episode": () => null, "Two arms": () => this.otherArm(), "Before and after training": () => this.before(),
    })) {
      const button = make("button", { type: "button", textContent: words, "aria-pressed": "false" });
      button.addEventListener("click", () => this.compare(choose(), button));
      this.presets.append(button);
    }
    this.presets.firstChild.setAttribute("aria-pressed", "true");
    const choice = make("div", { className: "controls" }, this.task.label, this.wanted.label,
      make("label", { className: "check" }, this.tokens, "Token probabilities"));
    this.task.label.hidden = tasks.length < 2;
    this.presets.hidden = this.controls[0].hidden = !several;
    this.root.replaceChildren(
      choice, this.presets, ...this.controls,
      make("div", { className: "browser" },
        make("div", { className: "list" },
          make("label", { for: "episode-search", className: "soft" }, "Search in text"), this.search, this.problems,
          this.count, this.all),
        this.panels),
    );
  }

  /** Return a labelled select; `value` is the chosen one of `values`. */
  select(words, values, onChange) {
    const select = make("select");
    values.forEach((value, i) => select.append(new Option(VERDICTS[value] ?? String(value), i)));
    select.addEventListener("change", onChange);
    return { label: make("label", {}, words, select), get value() { return values[Number(select.value)]; },
      set value(value) { select.value = values.indexOf(value); } };
  }

  ofTask() {
    return this.groups.filter((group) => group.task === this.task.value);
  }

  /** Return the possible values of a field, given the values of the fields before it. */
  values(side, field) {
    const before = Object.keys(FIELDS).slice(0, Object.keys(FIELDS).indexOf(field));
    const fitting = this.ofTask().filter((group) => before.every((name) => group[name] === side[name]));
    return [...new Set(fitting.map((group) => group[field]))];
  }

  /** Replace values that do not exist, by the last update and else by the first value. */
  complete(side) {
    for (const field of Object.keys(FIELDS)) {
      const values = this.values(side, field);
      if (!values.includes(side[field])) side[field] = field === "update" ? values.at(-1) : values[0];
    }
    return side;
  }

  chooseTask() {
    this.sides[0] = this.complete({ mode: "sampled" });
    if (this.sides[1]) this.complete(this.sides[1]);
    this.refresh();
  }

  otherArm() {
    const other = this.values({}, "arm").find((arm) => arm !== this.sides[0].arm);
    return { ...this.sides[0], arm: other ?? this.sides[0].arm };
  }

  /** Show the first update on the left, and return the last one for the right. */
  before() {
    const updates = this.values(this.sides[0], "update");
    this.sides[0].update = updates[0];
    return { ...this.sides[0], update: updates.at(-1) };
  }

  compare(side, button) {
    this.sides[1] = side && this.complete(side);
    for (const each of this.presets.children) each.setAttribute("aria-pressed", String(each === button));
    this.complete(this.sides[0]);
    this.refresh();
  }

  refresh() {
    this.sides.forEach((side, number) => {
      const row = this.controls[number];
      row.hidden = !side || this.groups.length < 2;
      if (side) row.replaceChildren(make("strong", {}, number ? "Right" : this.sides[1] ? "Left" : "Shown"),
        ...Object.keys(FIELDS).map((field) => this.fieldSelect(side, field)));
    });
    this.list();
  }

  fieldSelect(side, field) {
    const select = this.select(FIELDS[field], this.values(side, field), () => {
      side[field] = select.value;
      this.complete(side);
      this.refresh();
    });
    select.value = side[field];
    return select.label;
  }

  // ---- list of problems

  /** Return key -> episode of a side. The key is the problem's index and how often it occurred before. */
  episodes(side) {
    const group = this.ofTask().find((each) => Object.keys(FIELDS).every((field) => each[field] === side[field]));
    const found = new Map();
    const seen = new Map();
    for (const episode of group?.episodes ?? []) {
      const times = seen.get(episode.index) ?? 0;
      seen.set(episode.index, times + 1);
      found.set(times ? `${episode.index} (${times + 1})` : String(episode.index), episode);
    }
    return { header: group?.header, episodes: found };
  }

  list(limit = LISTED) {
    this.shown = this.sides.filter(Boolean).map((side) => this.episodes(side));
    const [first, second] = this.shown;
    const searched = this.search.value.trim().toLowerCase();
    const chosen = this.problems.value;
    const options = document.createDocumentFragment();
    let count = 0;
    for (const [key, episode] of first.episodes) {
      const verdict = verdictOf(episode);
      if (this.wanted.value !== "all" && verdict !== this.wanted.value) continue;
      if (searched && !searchText(episode).includes(searched)) continue;
      const other = second && second.episodes.get(key);
      const words = (key) => VERDICTS[key].slice(2);
      const text = other ? `${words(verdict)} → ${words(verdictOf(other))}` : VERDICTS[verdict];
      count += 1;
      if (count <= limit) options.append(new Option(`${key}: ${text}`, key, false, key === chosen));
    }
    this.all.hidden = count <= limit;
    this.problems.replaceChildren(options);
    if (count && this.problems.selectedIndex < 0) this.problems.selectedIndex = 0;
    const played = first.header?.notes?.items;
    this.count.textContent = `${count} of ${first.episodes.size} recorded episodes`
      + (played > first.episodes.size ? ` (${played} were played)` : "")
      + (count > limit ? `; the first ${limit} are listed` : "");
    this.show();
  }

  // ---- one episode

  show() {
    const panels = this.shown.map(({ header, episodes }, number) => {
      const episode = episodes.get(this.problems.value);
      const panel = make("article", { className: "episode" });
      if (this.shown.length > 1) panel.append(make("h3", {}, this.title(this.sides[number])));
      panel.append(...(episode ? this.parts(header, episode)
        : [make("p", {}, this.problems.value ? "This problem is not recorded here." : "No episode fits.")]));
      return panel;
    });
    this.panels.replaceChildren(...panels);
  }

  title(side) {
    return `${side.arm}, seed ${side.seed}, update ${side.update}, ${side.mode}`;
  }

  parts(header, episode) {
    const verdict = verdictOf(episode);
    const score = episode.score === null ? "" : ` score ${figure(episode.score)}`;
    const parts = [make("p", {}, make("span", { className: `badge ${verdict}` }, VERDICTS[verdict]), score)];
    if (episode.not_graded) parts.push(make("p", {}, episode.not_graded));
    parts.push(make("h4", {}, "Problem"), make("div", { className: "text" }, episode.prompt || "(no common text)"));
    for (const [agent, text] of Object.entries(episode.private)) {
      parts.push(labelled(`only ${agent} reads: `, text));
    }
    if (episode.gold !== undefined) parts.push(this.gold(episode.gold));
    parts.push(...graphs(header, episode), agentTable(episode));
    episode.turns.forEach((turn, number) => parts.push(this.turn(header, episode, turn, number)));
    return parts;
  }

  gold(gold) {
    const parts = gold && typeof gold === "object" && Object.values(gold).every((part) => typeof part === "string");
    const text = typeof gold === "string" ? gold
      : parts ? Object.entries(gold).map(([agent, part]) => `${agent}: ${part}`).join(", ")
        : JSON.stringify(gold, null, 1);
    return labelled("gold: ", text);
  }

  turn(header, episode, turn, number) {
    const answers = header.team.answering.includes(turn.agent) && turn.kind === "say";
    const round = header.game.rounds > 1 ? `, round ${turn.round + 1}` : "";
    const kind = { say: "", call: " calls a tool", result: " gets a result" }[turn.kind];
    const card = make("section", { className: answers ? "turn answer" : "turn" },
      make("h4", {}, `${number + 1}. ${turn.agent}${kind}`,
        make("small", {}, `${round}${answers ? " (answers)" : ""}`)));
    if (turn.observation) card.append(observation(turn.observation));
    const known = this.tokens.checked && turn.tokens;
    card.append(make("div", { className: "reply text" }, ...(known ? tokens(turn) : [turn.text || "(empty)"])));
    const verdict = episode.verdicts[turn.agent];
    if (answers && verdict?.reason && !episode.turns.slice(number + 1).some((later) => later.agent === turn.agent)) {
      card.append(make("p", {}, `${VERDICTS[verdict.outcome]}: ${verdict.reason}`));
    }
    const facts = [];
    const [value, advantage] = [average(turn.value), average(turn.advantage)];
    if (value !== undefined) facts.push(`value before it ${figure(value)}`);
    if (advantage !== undefined) facts.push(`advantage ${figure(advantage, 2, true)}`);
    if (turn.logprobs?.length) facts.push(`${turn.tokens.length} tokens, ${leastLikely(turn)}`);
    if (facts.length) card.append(make("small", {}, facts.join(" · ")));
    return card;
  }
}

/** Return a text with a few words before it. */
function labelled(words, text) {
  return make("div", { className: "text" }, make("span", { className: "soft" }, words), text);
}

/** Return the messages that an agent read, folded. */
function observation(seen) {
  const characters = seen.messages.reduce((sum, message) => sum + message.content.length, 0);
  const words = seen.messages.length === 1 ? "1 message" : `${seen.messages.length} messages`;
  const details = make("details", {}, make("summary", {}, `reads ${words}, ${characters} characters`));
  for (const message of seen.messages) {
    const from = message.name ? `${message.role}, ${message.name}` : message.role;
    details.append(make("div", { className: "message" }, make("small", {}, from),
      make("div", { className: "text" }, message.content)));
  }
  if (seen.reply_prefix) {
    details.append(make("div", { className: "message" }, make("small", {}, "its reply begins with"),
      make("div", { className: "text" }, seen.reply_prefix)));
  }
  return details;
}

/** Return the tokens of a turn: the less likely, the stronger the colour. */
function tokens(turn) {
  return turn.tokens.map((text, i) => {
    const probability = Math.exp(turn.logprobs[i]);
    const own = Array.isArray(turn.advantage) ? `, advantage ${figure(turn.advantage[i], 3, true)}` : "";
    const span = make("span", { className: "token", title: `${(100 * probability).toFixed(1)} %${own}` },
      text === "\n" ? "⏎\n" : text);
    span.style.setProperty("--doubt", (1 - probability).toFixed(3));
    return span;
  });
}

function leastLikely(turn) {
  const least = Math.min(...turn.logprobs);
  const token = JSON.stringify(turn.tokens[turn.logprobs.indexOf(least)]);
  return `the least likely is ${token} with ${(100 * Math.exp(least)).toFixed(1)} %`;
}

/** Return a table of verdict, reward, value and advantage by agent. */
function agentTable(episode) {
  const turnsOf = (agent) => episode.turns.filter((turn) => turn.agent === agent && turn.kind !== "result");
  const cells = {
    verdict: (agent) => { const found = episode.verdicts[agent]; return found && VERDICTS[found.outcome]; },
    reward: (agent) => episode.rewards[agent] !== undefined ? figure(episode.rewards[agent]) : undefined,
    value: (agent) => { const x = average(turnsOf(agent).at(-1)?.value); return x === undefined ? x : figure(x); },
    advantage: (agent) => {
      const x = average(turnsOf(agent).at(-1)?.advantage);
      return x === undefined ? x : figure(x, 2, true);
    },
  };
  const agents = Object.keys(episode.rewards);
  const used = Object.keys(cells).filter((name) => agents.some((agent) => cells[name](agent) !== undefined));
  const head = make("tr", {}, make("th", { scope: "col", className: "key" }, "agent"),
    ...used.map((name) => make("th", { scope: "col" }, name)));
  const rows = agents.map((agent) => make("tr", {}, make("th", { scope: "row", className: "key" }, agent),
    ...used.map((name) => make("td", {}, cells[name](agent) ?? "–"))));
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Verdict and reward by agent" },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

const episodeRoot = document.getElementById("episode-browser");
if (episodeRoot) {
  unpack("episodes").then((groups) => new EpisodeBrowser(episodeRoot, groups))
    .catch((fault) => { episodeRoot.textContent = `The episodes cannot be read: ${fault.message}`; });
}
