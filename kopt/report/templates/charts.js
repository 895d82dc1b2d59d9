// Charts: Plotly is unpacked once the tables can be read, then draws one chart after the other.
let plotlyLoaded = null;
const drawn = new Set();

function plotly() {
  plotlyLoaded ??= inflated("data-plotly").then((source) => {
    const script = document.createElement("script");
    script.textContent = source;
    document.head.append(script);
    if (!window.Plotly) {
      throw new Error("the chart library did not load");
    }
    return window.Plotly;
  });
  return plotlyLoaded;
}

function themed(layout) {
  const axis = { gridcolor: colour("--grid"), linecolor: colour("--line"),
    zerolinecolor: colour("--line") };
  const whole = { ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colour("--text"), size: 12, family: getComputedStyle(document.body).fontFamily },
    hoverlabel: { bgcolor: colour("--raised"), bordercolor: colour("--line"), align: "left",
      font: { color: colour("--text") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--muted"),
      activecolor: colour("--accent") } };
  for (const name of ["xaxis", "yaxis"]) {
    whole[name] = { ...(layout[name] || {}), ...axis };
  }
  return whole;
}

const CONFIG = { responsive: true, displaylogo: false,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

async function draw(place, figure, config) {
  const library = await plotly();
  await library.newPlot(place, figure.data, themed(figure.layout), { ...CONFIG, ...config });
  drawn.add(place);
}

function recolour() {
  for (const place of drawn) {
    if (place.isConnected) {
      window.Plotly.react(place, place.data, themed(place.layout), CONFIG);
    } else {
      drawn.delete(place);
    }
  }
}

// A page of paper is narrower than a screen, and a picture is as wide as it was drawn.
const PAPER_PX = { narrow: 480, wide: 990 };

function fitPaper(isPaper) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    const most = place.closest(".wide") ? PAPER_PX.wide : PAPER_PX.narrow;
    place.style.zoom = isPaper ? Math.min(1, most / Math.max(1, place.offsetWidth)) : "";
  }
}

async function drawCharts(figures) {
  for (const place of document.querySelectorAll("[data-chart]")) {
    await draw(place, figures[place.dataset.chart]);
    await new Promise((next) => setTimeout(next));
  }
}
