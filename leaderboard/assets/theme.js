// Runs before anything is painted: says that there is script, and which colours to use.
(() => {
  "use strict";
  const root = document.documentElement;
  root.classList.add("js");
  const themes = ["system", "light", "dark"];
  const kept = () => {
    try {
      return localStorage.getItem("theme");
    } catch {
      return null; // pages from disk may keep nothing in some browsers
    }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  let theme = themes.includes(kept()) ? kept() : "system";
  apply(theme);
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const say = () => {
      button.textContent = `Theme: ${theme}`;
    };
    say();
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      try {
        localStorage.setItem("theme", theme);
      } catch {
        // Kept for this page only.
      }
      apply(theme);
      say();
    });
  });
})();
