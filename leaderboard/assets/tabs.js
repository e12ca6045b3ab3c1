// Tabs and search: items of one kind at a time, or of every kind whose words match.
(() => {
  "use strict";
  const form = document.querySelector("form.tabs");
  if (!form) return;
  const items = [...document.querySelectorAll(".item")];
  const groups = [...document.querySelectorAll(".group")];
  const buttons = [...form.querySelectorAll("button[data-tab]")];
  const search = form.elements.words;
  const status = form.querySelector("[role=status]");
  const kinds = buttons.map((button) => button.dataset.tab);
  let tab = kinds[0];

  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (item) => (words.length ? words.every((word) => item.textContent.toLowerCase().includes(word))
      : tab === "*" || item.dataset.kind.split("|").includes(tab));
    for (const item of items) item.hidden = !fits(item);
    for (const group of groups) {
      const shown = [...group.querySelectorAll(".item")].filter((item) => !item.hidden).length;
      group.hidden = !shown;
      const count = group.querySelector(".shown");
      if (count) count.textContent = shown;
      if (words.length) for (const box of group.querySelectorAll("details.folded")) box.open = true;
    }
    const n = items.filter((item) => !item.hidden).length;
    status.textContent = words.length ? `${n} of ${items.length}` : "";
    for (const button of buttons) button.setAttribute("aria-pressed", String(!words.length && button.dataset.tab === tab));
    document.dispatchEvent(new CustomEvent("rows"));
  }
  function choose(kind) {
    tab = kind;
    search.value = "";
    show();
  }
  for (const button of buttons) {
    button.addEventListener("click", () => {
      choose(button.dataset.tab);
      history.replaceState(null, "", `#${button.dataset.tab === "*" ? "all" : encodeURIComponent(button.dataset.tab)}`);
    });
  }
  search.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  // An address names a tab, or something on the page, which may be under another one.
  function arrive() {
    const at = decodeURIComponent(location.hash.slice(1));
    if (kinds.includes(at)) tab = at;
    else if (at) tab = "*";
    show();
    if (at && document.getElementById(at)) document.getElementById(at).scrollIntoView();
  }
  addEventListener("hashchange", arrive);
  arrive();
})();
