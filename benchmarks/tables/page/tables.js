"use strict";

/* Tables: a press on a heading sorts, a box above filters, and the choices at the top hide rows and figures. */

/** Return what a cell is sorted by: its first number, or its text; null for an empty cell. */
function sortKey(cell) {
  const text = cell.textContent.trim();
  if (text === "-" || text === "") return null;
  const number = /^[<>+]?\s*-?[\d,]*\.?\d+(e[+-]?\d+)?/i.exec(text);
  return number ? Number(number[0].replace(/[<>+,\s]/g, "")) : text;
}

function compareKeys(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function sortTable(table, heading) {
  const column = [...heading.parentNode.children].indexOf(heading);
  const down = heading.getAttribute("aria-sort") === "ascending";
  for (const each of heading.parentNode.children) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [sortKey(row.cells[column]), row]);
  const empty = rows.filter(([key]) => key === null);
  const sorted = rows.filter(([key]) => key !== null).sort(([a], [b]) => (down ? -1 : 1) * compareKeys(a, b));
  table.tBodies[0].append(...[...sorted, ...empty].map(([, row]) => row));
}

const chosen = Object.fromEntries(["task", "mode", "arm"].map((name) => [name, document.getElementById(`show-${name}`)]));

/** Return whether the choices at the top show something with these data attributes. */
function isChosen(data) {
  const { task, mode, arm } = chosen;
  return (!task.value || data.task === undefined || data.task === task.value)
    && (!mode.value || !data.mode || data.mode === mode.value)
    && (!arm.value || !data.arms || data.arms.split(" ").includes(arm.value));
}

function filterRows(table) {
  const words = table.filterBox ? table.filterBox.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  for (const row of table.tBodies[0].rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !isChosen(row.dataset) || !words.every((word) => text.includes(word));
  }
}

function setUpTable(table) {
  for (const heading of table.tHead.rows[0].cells) {
    const button = make("button", { type: "button", textContent: heading.textContent });
    if (heading.dataset.help) button.dataset.help = heading.dataset.help;
    delete heading.dataset.help;
    button.addEventListener("click", () => sortTable(table, heading));
    heading.replaceChildren(button);
  }
  if (table.tBodies[0].rows.length > 3) {
    const region = table.closest(".scroll");
    const box = make("input", { type: "search", placeholder: "filter rows",
      "aria-label": `Filter rows: ${region.getAttribute("aria-label")}` });
    box.addEventListener("input", () => filterRows(table));
    table.filterBox = box;
    region.before(make("div", { className: "filter" }, box));
  }
}

const tables = [...document.querySelectorAll("main table")];
tables.forEach(setUpTable);
for (const select of Object.values(chosen)) {
  select.addEventListener("change", () => {
    tables.forEach(filterRows);
    for (const line of document.querySelectorAll(".headline")) line.hidden = !isChosen(line.dataset);
    document.dispatchEvent(new Event("choice"));
  });
}

// ---- explanations of headings and arms

const help = document.getElementById("help");

function showHelp(element) {
  help.textContent = element.dataset.help;
  help.hidden = false;
  element.setAttribute("aria-describedby", "help");
  const box = element.getBoundingClientRect();
  const left = Math.min(box.left, document.documentElement.clientWidth - help.offsetWidth - 8);
  help.style.left = `${Math.max(8, left) + window.scrollX}px`;
  help.style.top = `${box.bottom + 6 + window.scrollY}px`;
}

function hideHelp() {
  help.hidden = true;
  document.querySelector("[aria-describedby=help]")?.removeAttribute("aria-describedby");
}

for (const [show, hide] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
  document.addEventListener(show, (event) => {
    const element = event.target.closest?.("[data-help]");
    if (element) showHelp(element);
  });
  document.addEventListener(hide, hideHelp);
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideHelp(); });
