// The heatmap: one group of scenarios at a time where there is little room; variants when asked for.
(() => {
  "use strict";
  for (const box of document.querySelectorAll(".heat-choice")) {
    const table = box.nextElementSibling.querySelector("table.heat");
    const select = box.querySelector("select");
    const show = () => {
      for (const cell of table.querySelectorAll("[data-part]")) {
        cell.classList.toggle("away", cell.dataset.part !== select.value);
      }
    };
    select.addEventListener("change", show);
    show();
  }
  const variants = document.getElementById("variants");
  if (!variants) return;
  const fold = () => {
    for (const row of document.querySelectorAll("table.heat tr.variant")) row.hidden = !variants.checked;
  };
  variants.addEventListener("change", fold);
  fold();
})();
