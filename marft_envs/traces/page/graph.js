"use strict";

/* The dependency graph of an episode as a drawing. */

/** Return a drawing of D for each round in which it differs. */
function graphs(header, episode) {
  const agents = Object.keys(header.team.roles);
  const found = header.team.dependency;
  if (agents.length < 2) return [];
  if (!found) return [make("p", {}, `Who sees whom is decided in the episode (${header.team.decided_by}).`)];
  const rounds = found.rounds ?? [found.edges];
  return rounds.flatMap((edges, number) => [
    ...(rounds.length > 1 ? [make("small", {}, `Round ${number + 1}`)] : []),
    graph(agents, edges, header.team.answering),
  ]);
}

/** Return the drawing of one graph: an agent stands to the right of all agents that it sees. */
function graph(agents, edges, answering) {
  const level = Object.fromEntries(agents.map((agent) => [agent, 0]));
  for (let i = 0; i < agents.length; i += 1) {
    for (const [seen, seeing] of edges) {
      level[seeing] = Math.min(agents.length, Math.max(level[seeing], level[seen] + 1));
    }
  }
  if (!edges.length) agents.forEach((agent, i) => { level[agent] = i % 4; }); // nobody sees anybody: rows of four
  const columns = [...new Set(Object.values(level))].sort((a, b) => a - b)
    .map((each) => agents.filter((agent) => level[agent] === each));
  const height = 40 * Math.max(...columns.map((column) => column.length)) + 8;
  const width = 9 + 8 * Math.max(...agents.map((agent) => agent.length));
  const step = width + 56;
  const at = {};
  columns.forEach((column, x) => column.forEach((agent, y) => {
    at[agent] = [x * step + 4, (height * (y + 0.5)) / column.length];
  }));
  const words = edges.map(([seen, seeing]) => `${seeing} sees ${seen}`).join(", ") || "nobody sees anybody";
  const svg = svgNode("svg", { class: "graph", viewBox: `0 0 ${columns.length * step - 48} ${height}`, role: "img",
    "aria-label": `Dependency function D: ${words}` });
  svg.style.maxWidth = `${columns.length * step - 48}px`;
  const size = { refX: 7, refY: 4, markerWidth: 8, markerHeight: 8 };
  const arrow = svgNode("marker", { id: "arrow", viewBox: "0 0 8 8", orient: "auto", ...size });
  arrow.append(svgNode("path", { d: "M0,0 L8,4 L0,8 z" }));
  svg.append(arrow);
  for (const [seen, seeing] of edges) {
    const [x1, y1, x2, y2] = [at[seen][0] + width, at[seen][1], at[seeing][0], at[seeing][1]];
    const line = `M${x1},${y1} C${x1 + 28},${y1} ${x2 - 28},${y2} ${x2},${y2}`;
    svg.append(svgNode("path", { d: line, "marker-end": "url(#arrow)" }));
  }
  for (const agent of agents) {
    const [x, y] = at[agent];
    const node = svgNode("g", { class: answering.includes(agent) ? "acts" : "" });
    const label = svgNode("text", { x: x + width / 2, y });
    label.textContent = agent;
    node.append(svgNode("rect", { x, y: y - 15, width, height: 30, rx: 6 }), label);
    svg.append(node);
  }
  return svg;
}

function svgNode(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
