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
    for (const b of boards.filter((b) => b.group === group)) make("option", box, b.title).value = b.slug;
  }
  board.value = boards[0].slug;
  const held = document.getElementById("choose-held");
  const TRAINED = ["the new classifier", "labels"];
  for (const [key, words] of Object.entries(data.held)) {
    const label = make("label", held);
    const input = make("input", label);
    Object.assign(input, { type: "checkbox", name: "held", value: key });
    label.append(` ${words}`);
  }
  const ticked = (name) => field(name).checked;
  const AMOUNTS = ["items", "throughput", "price", "training", "pairs", "rate"];
  const amount = (name) => Number(field(name).value);
  // A number that the browser refuses, as an empty one or one below the least, is no amount.
  function wrong() {
    for (const name of AMOUNTS) {
      const input = field(name);
      const fits = input.value !== "" && input.validity.valid && Number.isFinite(amount(name));
      input.setAttribute("aria-invalid", String(!fits));
      if (!fits) return `${input.parentElement.firstChild.textContent.trim()}: expected a number of at least ${input.min}.`;
    }
    return "";
  }
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
    } else if (row.fitted && !pairs()) return "no item can be embedded by both models";
    if (row.rewrites && !ticked("rewrite")) return "the index may not be rewritten";
    if (row.held.includes("the old model on all queries") && !ticked("runs")) return "the old model must run on every query";
    if (row.embeds && !ticked("sources")) return "it embeds stored items anew, whose sources are gone";
    const lacks = row.held.find((key) => !have.has(key));
    return lacks ? `it needs ${data.held[lacks]}` : "";
  }

  // ---- The arithmetic of benchmark/metrics/cost_model.py.
  function hours(row) {
    const extra = (row.costs.training_cost ?? 1) - 1;
    const mapped = (multiplyAdds) => multiplyAdds / amount("rate") / 3600;
    const training = row.way !== "train" ? mapped(row.costs.fit_multiply_adds ?? 0)
      : extra >= data.least_extra ? extra * amount("training") : 0;
    const embedded = row.way !== "train" && row.fitted ? Math.min(amount("pairs"), amount("items")) : 0;
    const embedding = embedded / amount("throughput") / 3600;
    const converting = mapped(amount("items") * (row.costs.convert_multiply_adds ?? 0));
    return { training, embedding, converting, all: training + embedding + converting };
  }
  const count = (v, digits) => v.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  function time(h) {
    if (h < 1 / 60) return h > 0 ? "under a minute" : "no time";
    if (h < 1) return `${(60 * h).toFixed(0)} min`;
    return `${h < 10 ? h.toFixed(1) : count(h, 0)} h`;
  }
  function money(h) {
    const m = h * amount("price");
    if (m < 0.01) return m > 0 ? "under $0.01" : "$0";
    return `$${count(m, m >= 100 ? 0 : 2)}`;
  }
  const spent = (h) => (h ? `${time(h)} of one machine, ${money(h)}` : "no extra machine time");
  // Of an update, and of what the new model embeds while queries wait.
  function bill(row) {
    const later = row.embeds
      ? ` and ${money((1e6 * row.embeds) / amount("throughput") / 3600)} a million queries, ${row.embeds} items embedded anew for each` : "";
    return spent(hours(row).all) + later;
  }

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
    if (h.training) said.push(`${time(h.training)} training${row.way === "train" ? " more than without" : " of the map"}`);
    if (h.embedding) said.push(`${time(h.embedding)} embedding pairs`);
    if (h.converting) said.push(`${time(h.converting)} converting the index`);
    return said.length > 1 ? ` (${said.join(", ")})` : "";
  }
  // No method fits: the old model, everything anew, or neither, and the reason that decides.
  function otherwise(b, allowed, have) {
    const anew = ticked("sources") && ticked("rewrite");
    const ways = ticked("runs") ? "Keep the old model" : anew ? "Embed everything again" : "";
    const best = b.rows.find((row) => row.fits && (row.way !== "train" || modeOf() === "own"));
    const names = allowed.filter((row) => !row.hurts).map((row) => row.method);
    const some = names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} others` : names.join(", ");
    const why = [];
    if (b.unknown) return `${ways || "Nothing that was measured keeps this index in use"}: ${b.unknown}.`;
    if (some) why.push(`the methods that are possible here (${some}) are no better than the old model`);
    if (best) why.push(`${best.method} ${best.keeps}, but ${refused(best, have)}`);
    if (!why.length) why.push("no measured method is better than the old model without hurting new/new");
    return `${ways || "Nothing that was measured keeps this index in use"}: ${why.join("; ")}.`;
  }
  function show() {
    remember();
    const b = boards.find((each) => each.slug === board.value);
    const have = new Set([...held.querySelectorAll("input:checked")].map((i) => i.value));
    out.replaceChildren();
    const answer = make("div", out, undefined, "answer recommended");
    const head = make("p", answer);
    const error = wrong();
    if (error) {
      head.append(error);
      return;
    }
    const allowed = b.rows.filter((row) => !refused(row, have));
    const fit = allowed.filter((row) => row.fits && !row.hurts);
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
      line(list, "Cost", `${bill(best)}${parts(best)}`);
      const second = fit[1];
      line(list, "Runner-up", second ? `${second.method} ${second.keeps}; ${bill(second)}`
        : "none: no other method that is possible here keeps anything");
      const more = b.rows.find((row) => row.fits && (row.way !== "train" || modeOf() === "own"));
      if (more !== best) line(list, "Keeps more", `${more.method} ${more.keeps}, but ${refused(more, have)}`);
    } else head.append(otherwise(b, allowed, have));
    const list = make("dl", out, undefined, "sentences others");
    const of = (share) => (!b.unknown ? `${share} of the upgrade, ` : "");
    if (ticked("runs")) line(list, "Keep the old model", `${of("0 %")}${b.metric} ${b.today}, no cost`);
    if (ticked("sources") && ticked("rewrite")) {
      line(list, "Embed everything again", `${of("100 %")}${b.metric} ${b.alone}, after ${spent(amount("items") / amount("throughput") / 3600)}${ticked("runs") ? "; until then the old model" : "; until then nothing answers old vectors"}`);
    }
    if (modeOf() === "vendor") {
      line(list, "Before the switch-off", "embed a sample of the items and of the queries with both models: maps are fitted on it, and bench upgrade judges by it");
    }
    const hurting = allowed.filter((row) => row.hurts).map((row) => row.method);
    if (hurting.length) line(list, "Never recommended", `${hurting.join(", ")}: new/new suffers beyond the interval`);
    const more = make("p", out, undefined, "note");
    const all = make("a", more, "The whole ranking and its plots");
    all.href = `boards/${b.slug}.html`;
  }

  // ---- The address keeps what is not as the page brings it, so that an answer can be sent.
  const values = () => [...form.elements].filter((e) => e.name).map((e) => {
    const key = e.name === "held" ? `held ${e.value}` : e.name;
    return [key, e.type === "checkbox" ? String(Number(e.checked)) : e.value, e];
  }).filter(([, , e]) => e.type !== "radio" || e.checked);
  let plain = new Map();
  function remember() {
    const brought = (key, e) => (e.name === "held" ? String(Number(modeOf() === "own" && TRAINED.includes(e.value))) : plain.get(key));
    const changed = values().filter(([key, value, e]) => plain.has(key) && brought(key, e) !== value);
    const mine = location.hash.startsWith("#which");
    if (!changed.length && !mine) return;
    const words = new URLSearchParams(changed.map(([key, value]) => [key, value]));
    history.replaceState(null, "", changed.length ? `#which?${words}` : "#which");
  }
  function recall() {
    const [place, words] = location.hash.split("?");
    if (place !== "#which" || !words) return;
    const given = new URLSearchParams(words);
    if (given.has("mode")) setMode(given.get("mode") === "own" ? "own" : "vendor");
    for (const [key, , e] of values()) {
      if (!given.has(key) || e.type === "radio") continue;
      if (e.type === "checkbox") e.checked = given.get(key) === "1";
      else e.value = given.get(key);
    }
    if (!board.value) board.value = boards[0].slug;
    document.getElementById("which").scrollIntoView();
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
    a.addEventListener("click", (event) => {
      event.preventDefault(); // whose address has no answers
      const { mode, ...rest } = presets[a.dataset.preset];
      setMode(mode);
      for (const [name, on] of Object.entries(rest)) field(name).checked = on;
      show();
      document.getElementById("which").scrollIntoView();
    });
  }
  setMode(modeOf());
  plain = new Map(values().map(([key, value]) => [key, value]));
  recall();
  show();
})();
