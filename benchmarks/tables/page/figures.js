"use strict";

/* Figures, drawn by uPlot: lines with bands, values under the pointer, and a legend that hides arms. */

const FIGURES = JSON.parse(document.getElementById("charts").textContent);
const drawn = [];

/** Return a colour that is readable on the present background. */
function ink(colour) {
  return document.documentElement.dataset.theme === "dark" ? `color-mix(in srgb, ${colour} 65%, white)` : colour;
}

/** Return the colour as the canvas takes it, with an opacity. */
function paint(colour, alpha) {
  const probe = make("span");
  probe.style.color = ink(colour);
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  const [r, g, b] = found.startsWith("color(")
    ? found.match(/[\d.]+/g).slice(0, 3).map((part) => Math.round(255 * part)) : found.match(/[\d.]+/g);
  return `rgba(${r}, ${g}, ${b}, ${alpha})`;
}

function themed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Return the text of a value in the legend: the mean, and its band where there is one. */
function legendValue(chart, series) {
  const edges = ["low", "high"].map((role) => chart.series.find((each) => each.arm === series.arm && each.role === role));
  return (plot, value, _, index) => {
    let at = index;
    if (at === null || at === undefined) { // no pointer in the figure: the last value
      at = series.y.findLastIndex((each) => each !== null);
      value = series.y[at];
    }
    if (value === null || value === undefined) return "–";
    const write = (number) => (chart.unit ? number.toFixed(1) : Number(number.toPrecision(3)).toString());
    const [low, high] = edges.map((edge) => edge?.y[at]);
    return write(value) + (low !== undefined && low !== null && high !== null ? ` [${write(low)}, ${write(high)}]` : "");
  };
}

function seriesOptions(chart) {
  const seeds = document.getElementById("show-seeds").checked;
  const arm = chosen.arm.value;
  return chart.series.map((series) => {
    const mean = series.role === "mean";
    const seed = series.role === "seed";
    return {
      label: series.label ?? "", class: mean ? "arm" : "quiet", spanGaps: true, points: { show: chart.x.length === 1 },
      show: (!arm || series.arm === arm) && (!seed || seeds),
      stroke: mean || seed ? paint(series.colour, mean ? 1 : 0.55) : "transparent",
      width: mean ? 2.5 : seed ? 1 : 0, dash: mean ? series.dash : [], value: legendValue(chart, series),
    };
  });
}

function bands(chart) {
  return chart.series.flatMap((series, i) => {
    const low = chart.series.findIndex((each) => each.arm === series.arm && each.role === "low");
    return series.role === "high" && low >= 0 ? [{ series: [i + 1, low + 1], fill: paint(series.colour, 0.16) }] : [];
  });
}

function axis(chart, isX) {
  return {
    stroke: themed("--soft"), grid: { stroke: themed("--line"), width: 1 }, ticks: { stroke: themed("--line") },
    font: "12px system-ui", label: isX ? "update" : chart.unit, labelFont: "12px system-ui", labelSize: 18,
    size: isX ? 32 : 50, incrs: isX ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] : undefined,
  };
}

function draw(figure) {
  const { chart, place } = figure;
  figure.plot?.destroy();
  const wide = Math.max(200, place.clientWidth);
  figure.plot = new uPlot({
    width: wide, height: chart.unit ? 280 : 190,
    scales: { x: { time: false }, y: chart.unit ? { range: (_, low, high) => axisRange(low, high) } : {} },
    axes: [axis(chart, true), axis(chart, false)],
    series: [{ label: "update", value: (_, x) => x ?? chart.x.at(-1) }, ...seriesOptions(chart)], bands: bands(chart),
    cursor: { drag: { x: false, y: false } },
  }, [chart.x, ...chart.series.map((series) => series.y)], place);
  followLegend(figure);
}

/** Return the range of an accuracy axis: the data with a margin, at least 10 wide, inside 0 to 100. */
function axisRange(low, high) {
  if (low === null || low === undefined) return [0, 100];
  const pad = Math.max(0.06 * (high - low), (10 - (high - low)) / 2);
  return [Math.max(-1, low - pad), Math.min(101, high + pad)];
}

/** Make the names in the legend buttons; one hides the whole arm, with its band and seeds. */
function followLegend({ chart, plot, place }) {
  const rows = [...place.querySelectorAll(".u-legend .u-series")].slice(1);
  rows.forEach((row, i) => {
    const name = row.querySelector("th");
    if (chart.series[i].role !== "mean") return;
    const press = (event) => {
      event.stopImmediatePropagation();
      if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      const show = !plot.series[i + 1].show;
      const seeds = document.getElementById("show-seeds").checked;
      chart.series.forEach((series, j) => {
        if (series.arm === chart.series[i].arm) plot.setSeries(j + 1, { show: show && (series.role !== "seed" || seeds) });
      });
      name.setAttribute("aria-pressed", String(show));
    };
    name.tabIndex = 0;
    name.setAttribute("role", "button");
    name.setAttribute("aria-pressed", String(plot.series[i + 1].show));
    name.addEventListener("click", press, true);
    name.addEventListener("keydown", press, true);
  });
}

function description(chart) {
  const ends = chart.series.filter((series) => series.role === "mean").map((series) => {
    const known = series.y.filter((value) => value !== null);
    const write = (value) => Number(value.toPrecision(3)) + chart.unit;
    return known.length ? `${series.label} from ${write(known[0])} to ${write(known.at(-1))}` : "";
  });
  return `${chart.title}: ${ends.filter(Boolean).join(", ")}`;
}

const visible = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((each) => each.isIntersecting)) {
    const figure = drawn.find((each) => each.place === entry.target);
    if (!figure.plot) draw(figure);
  }
}, { rootMargin: "400px" });

function setUpFigures(charts, root) {
  for (const chart of charts) {
    const place = make("div", { role: "group", "aria-label": description(chart) });
    place.style.minHeight = chart.unit ? "320px" : "230px";
    const whole = make("figure", {}, make("figcaption", {}, chart.title), place);
    Object.assign(whole.dataset, { task: chart.task, mode: chart.mode });
    root.append(whole);
    drawn.push({ chart, place, whole });
    visible.observe(place);
  }
}

function redraw() {
  for (const figure of drawn) {
    figure.whole.hidden = !isChosen(figure.whole.dataset);
    if (figure.plot && !figure.whole.hidden) draw(figure);
  }
}

setUpFigures(FIGURES.curves, document.getElementById("curve-figures"));
const panels = document.getElementById("stability-figures");
if (panels) setUpFigures(FIGURES.stability, panels);
document.addEventListener("theme", redraw);
document.addEventListener("choice", redraw);
document.getElementById("show-seeds").addEventListener("change", redraw);
let waiting = 0;
window.addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(redraw, 150);
});
