// The overview's answer: of the methods that fit what you can and have, the best first.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const boards = data.chooser;
  const board = document.getElementById("choose-board");
  if (!board) return;
  const out = document.getElementById("chosen");
  const SHOWN = 5;
  let all = false;

  const make = (tag, parent, text = "", look = "") => {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    if (look) made.className = look;
    if (parent) parent.append(made);
    return made;
  };
  const check = (parent, name, value, words) => {
    const label = make("label", parent);
    const input = make("input", label);
    Object.assign(input, { type: "checkbox", name, value, checked: true });
    label.append(words);
  };
  boards.forEach((each, i) => {
    make("option", board, each.title).value = i;
  });
  const ways = new Set(boards.flatMap((b) => b.rows.map((r) => r.way)));
  const wayBox = document.getElementById("choose-ways");
  data.routes.filter((r) => ways.has(r.id)).forEach((r) => check(wayBox, "way", r.id, r.words));
  const needs = [...new Set(boards.flatMap((b) => b.rows.flatMap((r) => r.needs)))].sort();
  const needBox = document.getElementById("choose-needs");
  needs.filter((n) => n !== "side-information").forEach((n) => check(needBox, "need", n, n));
  needBox.parentElement.hidden = !needBox.children.length;

  const form = document.getElementById("chooser");
  const unchecked = (name) =>
    new Set([...form.querySelectorAll(`input[name="${name}"]:not(:checked)`)].map((i) => i.value));
  const page = (method) => document.querySelector(`tr[data-method="${CSS.escape(method)}"] a`)?.getAttribute("href");

  function print(value, b) {
    return value === null ? "–" : b.share ? (100 * value).toFixed(1) : value.toPrecision(3);
  }
  // Does a method answer better on day one than the old model does today?
  const beats = (row, b) => (b.higher ? row.cross > row.lower : row.cross < row.lower);
  function gauge(row, b, parent) {
    const top = Math.max(b.upper ?? 1, ...b.rows.map((r) => r.cross ?? 0));
    const place = (v) => `${Math.max(0, Math.min(100, (100 * v) / top))}%`;
    const bar = make("div", parent, "", "gauge");
    const good = beats(row, b);
    make("i", bar, "", good ? "" : "under").style.width = place(row.cross);
    if (row.lower !== null) make("u", bar).style.left = place(row.lower);
    const words = make("div", parent, "", "gauge-words");
    make("b", words, print(row.cross, b));
    words.append(` ${b.metric} on day one, ${good ? "better" : "worse"} than today's ${print(row.lower, b)} (mark); ${print(row.own, b)} once all is computed anew${row.seeds < b.seeds ? `; ${row.seeds} of ${b.seeds} seeds` : ""}`);
  }
  function show() {
    const b = boards[board.value || 0];
    const noWay = unchecked("way");
    const noNeed = unchecked("need");
    const fits = b.rows.filter((r) => !noWay.has(r.way) && !r.needs.some((n) => noNeed.has(n)));
    out.replaceChildren();
    if (!fits.length) {
      make("p", out, "No method that was measured here fits. Allow more above.", "callout");
      return;
    }
    const best = fits[0];
    const keep = !fits.some((r) => beats(r, b));
    const equal = (r) => !keep && beats(r, b) && (r === best || r.letters.some((l) => best.letters.includes(l)));
    const n = fits.filter(equal).length;
    if (b.worse) make("p", out, "Here the new model alone is worse than the old one: no update can gain.", "callout");
    make("p", out, keep
      ? `Keeping the old model is best: on day one none of ${fits.length} is better than it is today.`
      : n > 1
      ? `${n} methods cannot be told apart at the top; take the cheapest of these (marked).`
      : `Best of ${fits.length}: ${best.method}.`, "note");
    const list = make("ol", out, "", "options");
    (all ? fits : fits.slice(0, SHOWN)).forEach((row) => {
      const item = make("li", list, "", equal(row) ? "best" : "");
      const who = make("div", item, "", "who");
      const link = make("a", make("b", who));
      link.textContent = row.method;
      link.href = page(row.method) || `boards/${b.slug}.html`;
      make("small", who, data.routes.find((r) => r.id === row.way).words);
      gauge(row, b, make("div", item));
      const price = make("div", item, "", "price");
      (row.costs.length ? row.costs : ["cost not measured"]).forEach((c) => make("span", price, c));
    });
    if (b.unranked.length) {
      make("p", out, `Measured on fewer old models, or unsealed, and so not ranked: ${b.unranked.join(", ")}.`, "note");
    }
    const more = make("p", out);
    const link = make("a", more, "The whole table and plots");
    link.href = `boards/${b.slug}.html`;
    if (fits.length > SHOWN) {
      more.prepend(" ");
      const button = make("button", null, all ? "Show fewer" : `Show all ${fits.length}`);
      button.type = "button";
      button.addEventListener("click", () => {
        all = !all;
        show();
      });
      more.prepend(button);
    }
  }
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
