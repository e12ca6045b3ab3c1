// The quality of the old model: rows of some old models in place of those of all.
(() => {
  "use strict";
  const select = document.getElementById("old-models");
  if (!select) return;
  const { data } = window.kit;
  const at = (name) => data.columns.indexOf(name);
  const every = { rows: data.rows, metrics: data.metrics };

  const print = (value, about) =>
    value === null ? "-" : about.unit === "share" ? (100 * value).toFixed(1)
      : about.unit === "coefficient" ? value.toFixed(3) : String(Number(value.toPrecision(6)));

  const FEW = 3;
  const models = (row) => row[at("seeds")].split(" ").filter(Boolean).length;
  const percent = (value) => `${Math.round(100 * value)}\u00a0%`;

  function score(row, name, about) {
    const [value, low, high] = row.slice(at(name), at(name) + 3);
    const sure = low !== null && value !== null && models(row) >= FEW;
    if (data.shares.includes(name) || name === "upgrade kept") {
      const wide = sure ? ` ±\u00a0${Math.round(100 * Math.max(value - low, high - value))}` : "";
      return { text: value === null ? "-" : percent(value) + wide, sort: value, look: sure ? "" : "few" };
    }
    const wide = sure ? `±${print(Math.max(value - low, high - value, 0), about)}` : "";
    return { text: print(value, about), small: wide, sort: value, better: about.higher };
  }

  // What a row's cells say, in the order of the table's columns without the method's name; what does
  // not depend on the old model is null.
  function texts(row, about) {
    const rank = row[at("rank")];
    const ties = rank && row[at("tied with")];
    const found = [{ text: rank ?? "-", small: ties ? `${row[at("best rank")]} to ${row[at("worst rank")]}` : "", sort: rank }, score(row, "upgrade kept", about)];
    for (const name of [...data.parts, ...data.cases]) found.push(score(row, name, about));
    const answer = row[at("compatible")];
    const [good, , of] = answer === null ? [] : answer.split(" ");
    const share = answer === null ? null : answer === "yes" ? 1 : answer === "no" ? 0 : good / of;
    const sure = models(row) >= FEW;
    const [, low, high] = row.slice(at(data.first_day), at(data.first_day) + 3);
    const told = low !== null && (low > 0 || high < 0);
    found.push({ text: answer ?? "-", sort: share, look: !told ? "few" : share === 1 ? "yes" : share === 0 ? "no" : "" });
    const hurts = row[at("hurts")];
    found.push({ text: hurts ?? "", look: !sure ? "few" : hurts === "yes" ? "no" : "" });
    return [...found, null, null];
  }

  // The best of each column, as printed.
  function best(lines) {
    const tops = [];
    for (const line of lines) {
      line.forEach((cell, i) => {
        if (!cell || cell.better === undefined || cell.sort === null) return;
        const value = Number(cell.text);
        if (tops[i] === undefined || (cell.better ? value > tops[i] : value < tops[i])) tops[i] = value;
      });
    }
    return tops;
  }

  function paint(cell, said, top) {
    cell.className = said.look || "";
    if (said.sort === null || said.sort === undefined) cell.dataset.sort = "";
    else cell.dataset.sort = said.sort;
    const strong = said.better !== undefined && said.sort !== null && Number(said.text) === top;
    const text = strong ? document.createElement("strong") : document.createTextNode(said.text);
    if (strong) {
      text.textContent = said.text;
      cell.className = "best";
    }
    cell.replaceChildren(text);
    if (!said.small) return;
    const small = document.createElement("small");
    small.textContent = said.small;
    cell.append(" ", small);
  }

  // Sorting a table puts new bodies in place of its own: rows are kept by the place of theirs.
  const tables = [...document.querySelectorAll(".block table")];
  const order = new Map(tables.map((table) => [table, [...table.tBodies].map((body) => [...body.rows])]));
  const first = new Map();
  function restore() {
    for (const [cell, was] of first) {
      cell.replaceChildren(...was.nodes);
      cell.className = was.look;
      if (was.sort === undefined) delete cell.dataset.sort;
      else cell.dataset.sort = was.sort;
    }
  }
  function keep(cell) {
    if (first.has(cell)) return;
    first.set(cell, { nodes: [...cell.childNodes], look: cell.className, sort: cell.dataset.sort });
  }

  function show() {
    const part = data.old_models[select.value];
    restore();
    data.rows = part ? part.rows : every.rows;
    data.metrics = part ? every.metrics.map((m) => ({ ...m, ...part.metrics[m.key] })) : every.metrics;
    data.part = part ? part.label : "";
    data.present = part ? new Set(data.rows.filter((r) => r[at("kind")] === "method").map((r) => r[at("method")])) : null;
    metrics(part);
    if (part) document.querySelectorAll(".block").forEach((block) => fill(block));
    tables.forEach(inOrder);
    document.getElementById("old-models-note").hidden = !part;
    document.dispatchEvent(new CustomEvent("rows"));
  }

  // Only metrics that are known of some old models can be chosen with them.
  function metrics(part) {
    const metric = document.getElementById("metric");
    for (const option of metric.options) option.disabled = Boolean(part) && !(option.value in part.metrics);
    if (!metric.selectedOptions[0].disabled) return;
    metric.value = Object.keys(part.metrics)[0];
    metric.dispatchEvent(new Event("change"));
  }

  // Rows by score, as the table was at first.
  function inOrder(table) {
    const about = data.metrics.find((m) => m.key === table.closest(".block").dataset.metric);
    const sign = about.higher ? 1 : -1;
    const scores = new Map(data.rows.filter((r) => r[at("metric")] === about.key).map((r) => [r[at("method")], r[at("score")]]));
    // Doing without any method has the score of the old model, where a board has no row for it.
    const score = (row) => (row.dataset.method ? scores.get(row.dataset.method) : scores.get(row.dataset.bound) ?? about.lower);
    const rated = (row) => (score(row) ?? null) === null ? -Infinity : sign * score(row);
    [...table.tBodies].forEach((body, i) => {
      const mine = order.get(table)[i];
      const some = data.part && !body.classList.contains("bound");
      // Equal ones stay in order; the difference of two without a score is no number.
      body.append(...(some ? [...mine].sort((a, b) => rated(b) - rated(a) || 0) : mine));
    });
    table.querySelectorAll("thead th").forEach((th, i) => {
      if (i) th.removeAttribute("aria-sort");
      else th.setAttribute("aria-sort", "ascending");
    });
  }

  function fill(block) {
    const about = data.metrics.find((m) => m.key === block.dataset.metric);
    if (!data.old_models[select.value].metrics[about.key]) return;
    const mine = data.rows.filter((row) => row[at("metric")] === about.key);
    const lines = mine.map((row) => texts(row, about));
    const top = best(lines.filter((_, i) => mine[i][at("kind")] === "method"));
    mine.forEach((row, i) => {
      const name = CSS.escape(row[at("method")]);
      const method = row[at("kind")] === "method";
      const line = block.querySelector(method ? `tr[data-method="${name}"]` : `tr[data-bound="${name}"]`);
      if (!line || line.querySelector("td[colspan]")) return;
      const cells = [...line.querySelectorAll("td")];
      lines[i].forEach((said, k) => {
        if (!said) return;
        keep(cells[k]);
        // Doing without any method keeps what comes with time alone, or nothing.
        const alone = k === 1 && row[at("kind")] === "independent" && line.classList.contains("without");
        const blank = !method && !alone && (said.text === "-" || k < 2 || k >= cells.length - 5);
        const sure = method && models(row) >= FEW;
        if (blank && k === 1) return;
        paint(cells[k], blank ? { text: "" } : said, sure ? top[k] : undefined);
      });
      const last = cells[cells.length - 1];
      keep(last);
      const n = models(row);
      paint(last, { text: `${n}`, sort: n, look: n < FEW ? "few" : "" });
    });
  }
  select.addEventListener("change", show);
  // A reloaded page may come with what was chosen before.
  if (select.value !== "") show();
})();
