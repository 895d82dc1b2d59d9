// Light, dark, or as the system says. Charts follow.
const THEMES = ["as the system", "light", "dark"];
const THEME_KEY = "kopt-report-theme";
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
let theme = 0;
let isPrinting = false;
const onTheme = [];

function applyTheme() {
  const wanted = theme === 0 ? (systemIsDark.matches ? "dark" : "light") : THEMES[theme];
  document.documentElement.dataset.theme = isPrinting ? "light" : wanted;
  byId("theme").textContent = `Theme: ${THEMES[theme]}`;
  onTheme.forEach((call) => call());
}

function startTheme() {
  try {
    theme = Math.max(0, THEMES.indexOf(localStorage.getItem(THEME_KEY)));
  } catch {
    theme = 0; // A file that may keep nothing: the choice holds while it is open.
  }
  byId("theme").addEventListener("click", () => {
    theme = (theme + 1) % THEMES.length;
    try {
      localStorage.setItem(THEME_KEY, THEMES[theme]);
    } catch {
      // As above.
    }
    applyTheme();
  });
  systemIsDark.addEventListener("change", applyTheme);
  const print = (isOn) => () => {
    isPrinting = isOn;
    applyTheme();
    fitPaper(isOn);
  };
  addEventListener("beforeprint", print(true));
  addEventListener("afterprint", print(false));
  applyTheme();
}

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
