"use strict";

/** Return a new element. `options` are properties; children are nodes or strings (never HTML). */
function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Show the page in the system's colours, and in the other ones after each press of the button. */
function setUpTheme(button) {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const show = (dark) => {
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light colours" : "Dark colours";
    document.dispatchEvent(new Event("theme"));
  };
  system.addEventListener("change", () => show(system.matches));
  button.addEventListener("click", () => show(root.dataset.theme !== "dark"));
  show(system.matches);
}

/** Return the JSON value of an element that holds it as gzip in base64. */
async function unpack(id) {
  const text = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

setUpTheme(document.getElementById("theme"));
