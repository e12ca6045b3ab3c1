// What all charts share: data, colours, redrawing, and a method highlighted in every chart at once.
window.kit = (() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  // Rows come as lines: scores in millionths, and places of all other values among the words.
  const value = (part, i) => {
    if (!data.scores[i]) return data.words[part];
    return part === "" ? null : Number(part) / 1e6;
  };
  for (const part of [data, ...(data.old_models || [])]) {
    if (part.rows) part.rows = part.rows.map((line) => line.split("|").map(value));
  }
  const SYMBOLS = ["circle", "square", "triangle", "diamond", "cross", "star", "wye"];
  const MOST = 8;
  const REST = "var(--rest)";
  const names = Object.keys(data.methods || {}).filter((m) => data.methods[m].family !== "baseline");
  const top = data.top || [];
  // A method has one colour on every page, its variants share it, and symbols keep them apart.
  const own = (name) => {
    const hue = (data.hues || {})[name] ?? null;
    return hue === null ? "var(--grey)" : `var(--hue-${hue})`;
  };
  const symbol = (name) => {
    const alike = names.filter((n) => own(n) === own(name));
    return SYMBOLS[Math.max(alike.indexOf(name), 0) % SYMBOLS.length];
  };

  // ---- At most eight methods are shown in colour: those that were chosen, then the best.
  const pinned = [];
  const lit = () => [...new Set([...pinned, ...top])].slice(0, MOST);
  const isLit = (name) => lit().includes(name);
  const colour = (name) => (isLit(name) ? own(name) : REST);

  // Lines of one colour, variants of a method say, have other dashes, in the order of matplotlib's.
  const SAMPLES = ["━━━", "╍╍╍", "┅┅┅", "━·━", "┉┉┉", "━··", "╌╌╌", "┈┈┈"];
  const nth = (name) => {
    const alike = names.filter((n) => isLit(n) && own(n) === own(name));
    return Math.max(alike.indexOf(name), 0) % (data.dashes || [[]]).length;
  };
  const dash = (name, width) => data.dashes[nth(name)].map((part) => part * width).join(",") || undefined;
  const sample = (name) => SAMPLES[nth(name)];

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

  // ---- Names that would lie on one another: each tries its places in turn, the best method's
  // ---- first, at best where it covers no other coloured mark; one that finds none shows when a
  // ---- pointer is over its mark.
  const PLACES = [[0, 0], [0, 22], [34, 11], [-34, 11], [40, 0], [-40, 0], [40, 22], [-40, 22], [0, -13], [0, 35]];
  const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  function settle(box) {
    const frame = box.getBoundingClientRect();
    const ticks = [...box.querySelectorAll("g[data-mark$='tick label'] text")].map((text) => text.getBoundingClientRect());
    const left = Math.max(frame.left, ...ticks.filter((t) => t.right < frame.left + 60).map((t) => t.right)) + 3;
    const fixed = [...box.querySelectorAll(".fixed text")].map((text) => {
      const r = text.getBoundingClientRect();
      const x = Math.max(left - r.left, 0) || Math.min(frame.right - r.right, 0);
      text.style.translate = `${x}px 0`;
      return { left: r.left + x, right: r.right + x, top: r.top, bottom: r.bottom };
    });
    const kept = [...ticks, ...fixed];
    const dots = [...box.querySelectorAll("g[data-mark=dot] [data-method]")]
      .filter((dot) => isLit(dot.dataset.method)).map((dot) => [dot.dataset.method, dot.getBoundingClientRect()]);
    for (const text of box.querySelectorAll(".names text")) {
      const r = text.getBoundingClientRect();
      const others = dots.filter(([name]) => name !== text.dataset.method);
      const free = PLACES.map(([x, y]) => (
        { x, y, left: r.left + x - 1, right: r.right + x + 1, top: r.top + y, bottom: r.bottom + y }
      )).filter((at) => at.left >= frame.left && at.right <= frame.right && at.top >= frame.top
        && !kept.some((k) => meets(k, at)));
      const at = free.find((place) => !others.some(([, dot]) => meets(dot, place))) ?? free[0];
      text.classList.toggle("spare", !at);
      if (!at) continue;
      kept.push(at);
      text.style.translate = `${at.x}px ${at.y}px`;
    }
  }

  // ---- Highlighting.
  let hovered = null;
  function light() {
    for (const { box } of charts) box.classList.toggle("dimmed", hovered !== null && names.includes(hovered));
    for (const element of document.querySelectorAll("figure [data-method]")) {
      const name = element.dataset.method;
      element.classList.toggle("on", name === hovered || pinned.includes(name));
    }
    for (const row of document.querySelectorAll("tr[data-method]")) {
      row.classList.toggle("lit", pinned.includes(row.dataset.method));
    }
    for (const chip of document.querySelectorAll(".chip")) {
      const name = chip.dataset.name;
      chip.setAttribute("aria-pressed", String(pinned.includes(name)));
      chip.querySelector("i").style.background = colour(name);
      chip.hidden = chip.closest(".chips").dataset.all !== "yes" && !isLit(name);
    }
  }
  function legend(box, which) {
    box.classList.add("chips");
    for (const name of [...new Set([...top, ...which])]) {
      const chip = document.createElement("button");
      Object.assign(chip, { type: "button", className: "chip" });
      chip.dataset.name = name;
      chip.append(document.createElement("i"), name);
      chip.addEventListener("click", () => {
        const at = pinned.indexOf(name);
        if (at >= 0) pinned.splice(at, 1);
        else pinned.unshift(name);
        pinned.splice(MOST);
        drawn(charts);
      });
      chip.addEventListener("mouseenter", () => hover(name));
      chip.addEventListener("mouseleave", () => hover(null));
      chip.addEventListener("focus", () => hover(name));
      chip.addEventListener("blur", () => hover(null));
      box.append(chip);
    }
    if (which.length <= top.length) return;
    const more = document.createElement("button");
    Object.assign(more, { type: "button", className: "more", textContent: `All ${which.length} methods` });
    more.addEventListener("click", () => {
      box.dataset.all = "yes";
      more.remove();
      light();
    });
    box.append(more);
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
  return { data, names, colour, own, isLit, lit, symbol, dash, sample, chart, tagged, legend, choice, figure, style, light };
})();
