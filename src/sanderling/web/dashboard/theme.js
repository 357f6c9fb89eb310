// Runs before anything is drawn, so that the page never flashes in the other theme. Without a choice, the system's.
(() => {
  const KEY = "sanderling-theme";
  const root = document.documentElement;

  function kept() {
    try {
      return localStorage.getItem(KEY);
    } catch {
      return null; // storage may be forbidden; the theme then lasts as long as the page
    }
  }

  function show(theme) {
    if (theme === "light" || theme === "dark") {
      root.dataset.theme = theme;
    } else {
      delete root.dataset.theme;
    }
  }

  function isDark() {
    const chosen = root.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function label(button) {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Switch to the light theme" : "Switch to the dark theme");
  }

  show(kept());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    label(button);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => label(button));
    button.addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      show(theme);
      label(button);
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // As above.
      }
    });
  });
})();
