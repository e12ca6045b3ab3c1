// What all charts share: data, colours, redrawing, and a method highlighted in every chart at once.
window.kit = (() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito's colours, which all kinds of colour vision tell apart, less black and yellow.
  const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6bb1", "#7f7f7f"];
  const SYMBOLS = ["circle", "square", "triangle", "diamond", "cross", "star", "wye"];
  const names = Object.keys(data.methods || {}).filter((m) => data.methods[m].family !== "baseline");
  const place = new Map(names.map((name, i) => [name, i]));
  const colour = (name) => (place.has(name) ? COLOURS[place.get(name) % COLOURS.length] : "#8a8f94");
  const symbol = (name) =>
    SYMBOLS[Math.floor((place.get(name) || 0) / COLOURS.length) % SYMBOLS.length];

  // ---- Redrawing: when the width changes, when the metric does, when filters do.
  const charts = [];
  let passes = () => true;
  let metric = (data.metrics || [{}])[0].key;
  function redraw(chart) {
    const width = chart.figure.clientWidth - 26;
    if (width < 60) return;
    chart.width = width;
    const made = chart.draw(width, { metric, passes });
    chart.box.replaceChildren();
    chart.empty = !made;
    chart.figure.hidden = chart.empty;
    if (!made) return;
    chart.box.append(made);
    const svg = made.tagName === "svg" ? made : [...made.querySelectorAll("svg")].pop();
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", chart.words());
    // A group of an image has no name of its own.
    for (const part of svg.querySelectorAll("[aria-label]")) {
      part.dataset.mark = part.getAttribute("aria-label");
      part.removeAttribute("aria-label");
    }
    settle(chart.box);
  }
  function drawn(some) {
    some.forEach(redraw);
    light();
  }
  // A page that opens draws once, when all scripts have said what is shown: what can be seen at
  // once, then the rest, chart by chart.
  let opened = false;
  document.addEventListener("DOMContentLoaded", () => {
    opened = true;
    drawn(charts.filter((c) => c.figure.getBoundingClientRect().top < innerHeight));
  });
  function rest() {
    const one = charts.find((c) => c.width === undefined);
    if (!one) {
      document.documentElement.dataset.drawn = "all";
      return;
    }
    one.width = 0; // asked for, even if it is too narrow to be drawn
    drawn([one]);
    setTimeout(rest);
  }
  addEventListener("load", () => setTimeout(rest));
  // Draws when the page opens and whenever something changes; `draw` gives an SVG, or nothing to
  // hide the figure.
  function chart(figure, words, draw) {
    const box = figure.appendChild(document.createElement("div"));
    const made = { figure, box, draw, words: typeof words === "function" ? words : () => words };
    charts.push(made);
    if (opened) drawn([made]);
    return () => drawn([made]);
  }
  let timer = 0;
  addEventListener("resize", () => {
    clearTimeout(timer);
    timer = setTimeout(() => charts.forEach((c) => {
      c.figure.hidden = false;
      if (c.figure.clientWidth - 26 !== c.width) drawn([c]);
      else c.figure.hidden = c.empty;
    }), 120);
  });
  document.addEventListener("metric", (event) => {
    metric = event.detail; // filters follow, and say so
  });
  document.addEventListener("methods", (event) => {
    passes = event.detail;
    if (opened) drawn(charts);
  });

  // ---- A mark whose elements know their method: one a datum, or all of one method.
  const tagged = (of) => (index, scales, values, dimensions, context, next) => {
    const group = next(index, scales, values, dimensions, context);
    if (typeof of === "string") group.dataset.method = of;
    else [...group.children].forEach((child, k) => {
      child.dataset.method = of[index[k]];
    });
    return group;
  };

  // ---- Names that would lie on one another: the first ones stay, the others show when lit.
  function settle(box) {
    const kept = [];
    for (const text of box.querySelectorAll(".names text")) {
      const r = text.getBoundingClientRect();
      const hit = kept.some((k) => r.left < k.right && k.left < r.right && r.top < k.bottom && k.top < r.bottom);
      text.classList.toggle("spare", hit);
      if (!hit) kept.push(r);
    }
  }

  // ---- Highlighting.
  const pinned = new Set();
  let hovered = null;
  function light() {
    const on = new Set(pinned);
    if (hovered) on.add(hovered);
    for (const { box } of charts) box.classList.toggle("dimmed", on.size > 0);
    for (const element of document.querySelectorAll("figure [data-method]")) {
      element.classList.toggle("on", on.has(element.dataset.method));
    }
    for (const row of document.querySelectorAll("tr[data-method]")) {
      row.classList.toggle("lit", pinned.has(row.dataset.method));
    }
    for (const chip of document.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", String(pinned.has(chip.dataset.name)));
    }
  }
  function legend(box, which) {
    for (const name of which) {
      const chip = document.createElement("button");
      Object.assign(chip, { type: "button", className: "chip" });
      chip.dataset.name = name;
      const dot = chip.appendChild(document.createElement("i"));
      dot.style.background = colour(name);
      chip.append(name);
      chip.addEventListener("click", () => {
        if (!pinned.delete(name)) pinned.add(name);
        light();
      });
      chip.addEventListener("mouseenter", () => hover(name));
      chip.addEventListener("mouseleave", () => hover(null));
      chip.addEventListener("focus", () => hover(name));
      chip.addEventListener("blur", () => hover(null));
      box.append(chip);
    }
  }
  function hover(name) {
    if (hovered === name) return;
    hovered = name;
    light();
  }
  document.addEventListener("pointerover", (event) => {
    const at = event.target.closest ? event.target.closest("figure [data-method], tr[data-method]") : null;
    hover(at && charts.length ? at.dataset.method : null);
  });

  // ---- Controls above a chart.
  function choice(figure, words, options, changed) {
    let bar = figure.querySelector(".controls");
    if (!bar) {
      bar = document.createElement("div");
      bar.className = "controls";
      figure.querySelector("figcaption").after(bar);
    }
    const label = bar.appendChild(document.createElement("label"));
    label.append(`${words} `);
    const select = label.appendChild(document.createElement("select"));
    for (const [value, text] of options) {
      const option = select.appendChild(document.createElement("option"));
      Object.assign(option, { value, textContent: text });
    }
    select.addEventListener("change", changed);
    return select;
  }
  function figure(parent, title, wide) {
    const made = document.createElement("figure");
    if (wide) made.className = "wide";
    made.appendChild(document.createElement("figcaption")).textContent = title;
    parent.append(made);
    return made;
  }
  const style = { background: "none", fontSize: "12px", overflow: "visible" };
  return { data, names, colour, symbol, chart, tagged, legend, choice, figure, style, light };
})();
