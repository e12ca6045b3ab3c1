// The chooser: of the methods that a reader's situation allows, the first one; its hours and money.
// Methods come in the order in which they are recommended; leaderboard/answers.py says which.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const form = document.getElementById("chooser");
  const out = document.getElementById("chosen");
  const boards = data.chooser;
  if (!form || !boards.length) {
    if (form) form.hidden = true;
    return;
  }
  const field = (name) => form.elements[name];
  const make = (tag, parent, text, look) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (look) element.className = look;
    if (parent) parent.append(element);
    return element;
  };

  // ---- The form.
  const board = document.getElementById("choose-board");
  for (const group of new Set(boards.map((b) => b.group))) {
    const box = make("optgroup", board);
    box.label = group;
    boards.forEach((b, i) => {
      if (b.group === group) make("option", box, b.title).value = String(i);
    });
  }
  board.value = "0";
  const held = document.getElementById("choose-held");
  const TRAINED = ["the new classifier", "labels"];
  for (const [key, words] of Object.entries(data.held)) {
    const label = make("label", held);
    const input = make("input", label);
    Object.assign(input, { type: "checkbox", name: "held", value: key });
    label.append(` ${words}`);
  }
  const ticked = (name) => field(name).checked;
  const amount = (name) => {
    const value = Number(field(name).value);
    return Number.isFinite(value) && value > 0 ? value : 0;
  };
  const modeOf = () => field("mode").value;
  // Who trains the new model has its classifier and labels.
  function setMode(mode) {
    field("mode").value = mode;
    for (const input of held.querySelectorAll("input")) {
      if (TRAINED.includes(input.value)) input.checked = mode === "own";
    }
  }

  // ---- What is possible.
  // A map is fitted on items that both models embedded.
  const pairs = () => ticked("sources") || (ticked("runs") && ticked("images"));
  function refused(row, have) {
    if (row.way === "train") {
      if (modeOf() !== "own") return "you do not train the new model";
      if (!ticked("images") && !ticked("sources")) return "there is nothing to train on";
      if (!ticked("runs") && !ticked("sources")) return "the old vectors of training pictures cannot be had";
    } else {
      if (!pairs()) return "no item can be embedded by both models";
      if (row.way === "convert" && !ticked("rewrite")) return "the index may not be rewritten";
    }
    const lacks = row.held.find((key) => !have.has(key));
    return lacks ? `it needs ${data.held[lacks]}` : "";
  }

  // ---- The arithmetic of benchmark/upgrade/assumptions.py and leaderboard/money.py.
  function hours(row) {
    const training = Math.max((row.costs.training_cost ?? 1) - 1, 0) * amount("training");
    const embedded = row.way === "train" ? 0 : Math.min(amount("pairs"), amount("items"));
    const embedding = amount("throughput") ? embedded / amount("throughput") / 3600 : Infinity;
    const converting = amount("rate")
      ? (amount("items") * (row.costs.convert_multiply_adds ?? 0)) / amount("rate") / 3600 : Infinity;
    return { training, embedding, converting, all: training + embedding + converting };
  }
  const count = (v, digits) => v.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  function time(h) {
    if (!Number.isFinite(h)) return "unknown";
    if (h < 1 / 60) return h > 0 ? "under a minute" : "no time";
    if (h < 1) return `${(60 * h).toFixed(0)} min`;
    return `${h < 10 ? h.toFixed(1) : count(h, 0)} h`;
  }
  function money(h) {
    const m = h * amount("price");
    if (!Number.isFinite(m)) return "unknown";
    if (m < 0.01) return m > 0 ? "under $0.01" : "$0";
    return `$${count(m, m >= 100 ? 0 : 2)}`;
  }
  const bill = (h) => (h ? `${time(h)} of one machine, ${money(h)}` : "no extra machine time");

  // ---- The answer.
  function line(list, name, words) {
    const item = make("div", list);
    make("dt", item, name);
    make("dd", item, words);
  }
  function link(parent, row) {
    const a = make("a", parent, row.method, "pick");
    a.href = data.pages[row.method];
    return a;
  }
  function parts(row) {
    const h = hours(row);
    const said = [];
    if (h.training) said.push(`${time(h.training)} training${row.way === "train" ? " more than without" : " the map"}`);
    if (h.embedding) said.push(`${time(h.embedding)} embedding pairs`);
    if (h.converting) said.push(`${time(h.converting)} converting the index`);
    return said.length > 1 ? ` (${said.join(", ")})` : "";
  }
  function show() {
    const b = boards[Number(board.value) || 0];
    const have = new Set([...held.querySelectorAll("input:checked")].map((i) => i.value));
    const allowed = b.rows.filter((row) => !refused(row, have));
    const fit = allowed.filter((row) => row.fits && !row.hurts);
    const everything = amount("throughput") ? amount("items") / amount("throughput") / 3600 : Infinity;
    out.replaceChildren();
    const answer = make("div", out, undefined, "answer recommended");
    const head = make("p", answer);
    const best = fit[0];
    if (best) {
      head.append("Take ");
      link(head, best);
      head.append(": it ");
      make("b", head, best.keeps, best.sure ? "" : "few");
      head.append(".");
      make("p", answer, `${best.way === "train" ? "It " : "It is "}${data.ways[best.way]}. ${best.caveat}`.trim(), "note");
      const list = make("dl", answer, undefined, "sentences");
      line(list, "Score", best.score);
      line(list, "Worst moment", best.worst);
      line(list, "Cost", `${bill(hours(best).all)}${parts(best)}`);
      const second = fit[1];
      line(list, "Runner-up", second ? `${second.method} ${second.keeps}; ${bill(hours(second).all)}`
        : "none: no other method that is possible here keeps anything");
      const more = b.rows.find((row) => row.fits && (row.way !== "train" || modeOf() === "own"));
      if (more !== best) line(list, "Keeps more", `${more.method} ${more.keeps}, but ${refused(more, have)}`);
    } else {
      const why = new Map();
      for (const row of b.rows.filter((r) => r.fits)) {
        const words = refused(row, have);
        if (words) why.set(words, (why.get(words) || 0) + 1);
      }
      const main = [...why].sort((p, q) => q[1] - p[1])[0];
      head.append(ticked("runs") ? "Keep the old model: " : "Embed everything again, if you can: ");
      head.append(main ? `no measured method is possible, mostly because ${main[0]}.`
        : "no measured method that fits is better than it without hurting new/new.");
    }
    const list = make("dl", out, undefined, "sentences others");
    if (ticked("runs")) line(list, "Keep the old model", `0 % of the upgrade, ${b.metric} ${b.today}, no cost`);
    if (ticked("sources") && ticked("rewrite")) {
      line(list, "Embed everything again", `100 % of the upgrade, ${b.metric} ${b.alone}, after ${bill(everything)}${ticked("runs") ? "; until then the old model" : "; until then nothing answers old vectors"}`);
    }
    const hurting = allowed.filter((row) => row.hurts).map((row) => row.method);
    if (hurting.length) line(list, "Never recommended", `${hurting.join(", ")}: new/new suffers beyond the interval`);
    const more = make("p", out, undefined, "note");
    const all = make("a", more, "The whole ranking and its plots");
    all.href = `boards/${b.slug}.html`;
  }
  for (const input of form.querySelectorAll("input[name=mode]")) {
    input.addEventListener("change", () => setMode(modeOf()));
  }
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => event.preventDefault());

  // ---- Questions of readers set the form.
  const presets = {
    vendor: { mode: "vendor", runs: false, sources: true, rewrite: true, images: true },
    own: { mode: "own", runs: true, sources: true, rewrite: false, images: true },
  };
  for (const a of document.querySelectorAll("a[data-preset]")) {
    a.addEventListener("click", () => {
      const { mode, ...rest } = presets[a.dataset.preset];
      setMode(mode);
      for (const [name, on] of Object.entries(rest)) field(name).checked = on;
      show();
    });
  }
  setMode(modeOf());
  show();
})();
