// Tables: cards on narrow screens, filters, one metric at a time, downloads of what is shown.
(() => {
  "use strict";
  const $ = (query, root = document) => root.querySelector(query);
  const $$ = (query, root = document) => [...root.querySelectorAll(query)];
  const data = window.kit ? window.kit.data : $("#data") ? JSON.parse($("#data").textContent) : {};

  // ---- A row becomes a card on a narrow screen: every cell then needs its column's name, and
  // ---- the roles that other display values take from a table.
  const roles = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  for (const table of $$("table:not(.heat)")) {
    const heads = $$("thead th", table).map((th) => {
      const below = $("small", th);
      const parts = below ? [th.textContent.replace(below.textContent, ""), below.textContent] : [th.textContent];
      return parts.map((part) => part.replace(/\s+/g, " ").trim()).join(" ");
    });
    if (heads.length < 3) continue;
    // Cards of a ranking are many: short names.
    if (table.classList.contains("ranking")) {
      $$("thead th", table).forEach((th, i) => {
        const below = $("small", th);
        if (below) heads[i] = th.textContent.replace(below.textContent, "").trim();
      });
    }
    table.classList.add("stacked");
    for (const part of [table, ...$$("thead, tbody, tr, td", table)]) {
      part.setAttribute("role", roles[part.tagName]);
    }
    $$("thead th", table).forEach((th) => th.setAttribute("role", "columnheader"));
    $$("tbody th", table).forEach((th) => th.setAttribute("role", "rowheader"));
    for (const td of $$("tbody td:not([colspan])", table)) td.dataset.label = heads[td.cellIndex];
  }

  // ---- Where a table is wider than its place it is set tighter; where that does not help its
  // ---- rows become cards, but for a ranking with room for one.
  function fit() {
    for (const table of $$("table.stacked")) {
      table.classList.remove("as-cards", "tight");
      const room = table.parentElement.clientWidth;
      const wider = () => room && table.offsetWidth > room + 1;
      if (wider()) table.classList.add("tight");
      const stays = table.classList.contains("ranking") && innerWidth >= 1024;
      if (wider() && !stays) {
        table.classList.remove("tight");
        table.classList.add("as-cards");
      }
    }
    count();
  }
  // ---- Of many cards the first ones, until all are asked for.
  function fold() {
    for (const table of $$("table.stacked")) {
      const ranking = table.classList.contains("ranking");
      const most = ranking ? 24 : 8;
      const rows = $$(ranking ? "tr[data-method]" : "tbody tr", table).filter((row) => !row.hidden);
      const folded = table.classList.contains("as-cards") && !table.dataset.all && rows.length > most;
      rows.forEach((row, i) => row.classList.toggle("later", folded && i >= most));
      let more = table.nextElementSibling?.matches("button.more") ? table.nextElementSibling : null;
      if (folded && !more) {
        more = table.insertAdjacentElement("afterend", document.createElement("button"));
        Object.assign(more, { type: "button", className: "more" });
        more.addEventListener("click", () => {
          table.dataset.all = "yes";
          count();
        });
      }
      if (!more) continue;
      more.textContent = `All ${rows.length} ${ranking ? "methods" : "lines"}`;
      more.hidden = !folded;
    }
  }
  function count() {
    fold();
    const table = $(".block:not([hidden]) .ranking");
    const mine = table ? $$("tr[data-method]", table) : [];
    const shown = mine.filter((row) => !row.hidden && !row.classList.contains("later")).length;
    if ($("#count")) $("#count").textContent = `${shown} of ${mine.length} methods shown`;
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("th button")) setTimeout(fold, 50);
  });
  fit();
  addEventListener("load", fit);
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(fit, 60);
  });
  for (const event of ["metric", "rows"]) document.addEventListener(event, fit);
  document.addEventListener("toggle", fit, true);

  // ---- An address inside of something folded unfolds it.
  function unfold() {
    const at = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let box = at && at.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    if (at) at.scrollIntoView();
  }
  unfold();
  addEventListener("hashchange", unfold);

  // ---- Columns that begin sorted say so.
  for (const table of $$("table.ranking")) {
    const first = $("th", table.tHead);
    if (first) first.setAttribute("aria-sort", "ascending");
  }

  // ---- Filters: what a method is, needs and changes.
  const methods = data.methods || {};
  const known = (name) => [...new Set(Object.values(methods).flatMap((m) => m[name]))].sort();
  const groups = [
    ["family", "Show", known("family").filter((f) => f !== "baseline"), true],
    ["needs", "Hide what needs", known("needs"), false],
    ["changes", "Hide what changes", known("changes"), false],
  ];
  const words = { dimension: "the dimension (extra dimensions)", gallery: "the gallery", queries: "the queries" };
  for (const form of $$("form.filters")) {
    for (const [name, title, values, on] of groups) {
      if (values.length < (on ? 2 : 1)) continue;
      const set = document.createElement("fieldset");
      const legend = set.appendChild(document.createElement("legend"));
      legend.textContent = title;
      const box = set.appendChild(document.createElement("div"));
      box.className = "checks";
      for (const value of values) {
        const label = box.appendChild(document.createElement("label"));
        const input = label.appendChild(document.createElement("input"));
        Object.assign(input, { type: "checkbox", name, value, checked: on });
        label.append(words[value] || value);
      }
      form.append(set);
    }
    form.addEventListener("change", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  function passes(method) {
    if (data.present && !data.present.has(method)) return false;
    const about = methods[method];
    const form = $("form.filters");
    if (!about || !form) return true;
    const boxes = (name) => $$(`input[name="${name}"]`, form);
    const families = boxes("family");
    if (families.length && !families.some((b) => b.checked && b.value === about.family)) {
      if (families.some((b) => b.value === about.family)) return false;
    }
    return ["needs", "changes"].every((name) =>
      boxes(name).every((box) => !box.checked || !about[name].includes(box.value)),
    );
  }

  function filter() {
    const rows = $$("tr[data-method]");
    for (const row of rows) row.hidden = !passes(row.dataset.method);
    count();
    document.dispatchEvent(new CustomEvent("methods", { detail: passes }));
  }

  // ---- One metric at a time.
  const select = $("#metric");
  function showMetric() {
    for (const block of $$(".block")) block.hidden = block.dataset.metric !== select.value;
    document.dispatchEvent(new CustomEvent("metric", { detail: select.value }));
    filter();
  }
  if (select) {
    select.addEventListener("change", showMetric);
    showMetric();
  }

  document.addEventListener("rows", filter);

  // ---- Downloads of exactly the rows shown, in their order.
  function shownRows() {
    const at = (name) => data.columns.indexOf(name);
    const table = $(".block:not([hidden]) .ranking");
    const order = $$("tr[data-method]", table).filter((r) => !r.hidden).map((r) => r.dataset.method);
    const mine = data.rows.filter((row) => row[at("metric")] === select.value);
    const bounds = mine.filter((row) => row[at("kind")] !== "method");
    const rows = order.map((m) => mine.find((r) => r[at("kind")] === "method" && r[at("method")] === m));
    return [...bounds, ...rows.filter(Boolean)];
  }
  function csvField(value) {
    if (value === null) return "";
    let text = String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }
  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  const called = (ending) =>
    `${[data.slug, select.value, ...(data.part ? ["old", data.part] : [])].join("-").replace(/[^\w.+-]+/g, "-").replace(/-$/, "")}.${ending}`;
  if ($("#csv")) {
    $("#csv").addEventListener("click", () => {
      const lines = [data.columns, ...shownRows()].map((row) => row.map(csvField).join(","));
      save(called("csv"), "text/csv", lines.join("\n") + "\n");
    });
    $("#json").addEventListener("click", () => {
      const rows = shownRows().map((row) => Object.fromEntries(row.map((v, i) => [data.columns[i], v])));
      save(called("json"), "application/json", JSON.stringify(rows, null, 1) + "\n");
    });
  }
})();
