// The picture of one search's tree, and walking through it.
const SHAPES = { correct: "circle", incorrect: "x", cheated: "diamond", compile_failed: "square",
  crashed: "triangle-down", timed_out: "hourglass" };
let trees = [];
let tree = null;
let chosen = null;

const at = (node) => tree.place.get(node);

function hover(i) {
  const reached = tree.kind[i] === "correct" ? ` ${times(tree.speedup[i])}` : "";
  return `node ${tree.node[i]}: ${tree.kind[i]}${reached}<br>reward ${figure(tree.reward[i])}, `
    + `${tree.visits[i]} visit(s)`;
}

function edges() {
  const x = [], y = [];
  const [rootX] = tree.root;
  tree.node.forEach((node, i) => {
    const parent = at(tree.parent[i]);
    const from = parent === undefined ? [rootX, 0] : [tree.x[parent], -tree.y[parent]];
    x.push(from[0], tree.x[i], null);
    y.push(from[1], -tree.y[i], null);
  });
  return { type: "scatter", mode: "lines", x, y, hoverinfo: "skip", showlegend: false,
    line: { color: "rgba(128,128,128,0.55)", width: 1 } };
}

// A tree of a few nodes has room for larger ones, with their numbers.
function isRoomy() {
  return tree.node.length <= 40;
}

function size(visits) {
  return Math.min(44, (isRoomy() ? 18 : 9) + 4 * Math.sqrt(visits - 1));
}

function rewardScale(hasBar) {
  const [low, high] = ends(tree.reward);
  return { colorscale: "Cividis", cmin: low, cmax: high > low ? high : low + 1,
    showscale: hasBar, colorbar: { title: { text: "reward" }, thickness: 12, len: 0.8 } };
}

function nodesOfKind(kind, isFirst) {
  const members = tree.kind.flatMap((each, i) => (each === kind ? [i] : []));
  return { type: "scatter", mode: isRoomy() ? "markers+text" : "markers",
    name: `${kind} (${members.length})`,
    x: members.map((i) => tree.x[i]), y: members.map((i) => -tree.y[i]),
    customdata: members.map((i) => tree.node[i]), hovertext: members.map(hover),
    hovertemplate: "%{hovertext}<extra></extra>",
    // Below the ring that marks the best and the chosen one.
    text: members.map((i) => `<br>${tree.node[i]}`), textposition: "bottom center",
    marker: { symbol: SHAPES[kind], size: members.map((i) => size(tree.visits[i])), opacity: 1,
      color: members.map((i) => tree.reward[i]), ...rewardScale(isFirst),
      line: { color: "#808080", width: 1 } } };
}

function ring(nodes, name, dash) {
  const members = nodes.map(at).filter((i) => i !== undefined);
  return { type: "scatter", mode: "markers", name, hoverinfo: "skip",
    x: members.map((i) => tree.x[i]), y: members.map((i) => -tree.y[i]),
    marker: { symbol: "circle-open", color: "#D55E00",
      size: members.map((i) => size(tree.visits[i]) + 12),
      line: { width: dash ? 4 : 2, color: "#D55E00" } } };
}

function treeFigure() {
  const kinds = Object.keys(SHAPES).filter((kind) => tree.kind.includes(kind));
  const [rootX] = tree.root;
  const root = { type: "scatter", mode: "markers+text", x: [rootX], y: [0], text: ["ROOT"],
    textposition: "top center", hoverinfo: "skip", showlegend: false,
    marker: { symbol: "square-open", size: 12, color: "#808080", line: { width: 2 } } };
  const data = [edges(), root, ...kinds.map((kind, i) => nodesOfKind(kind, i === 0))];
  data.push(tree.best === null ? ring([], "best") : ring([tree.best], "best"));
  data.push({ ...ring(chosen === null ? [] : [chosen], "chosen", true), showlegend: false });
  const [, depth] = ends([1, ...tree.y]);
  const bare = { showgrid: false, zeroline: false, showticklabels: false, ticks: "",
    showline: false };
  return { data, layout: { dragmode: "pan", hovermode: "closest", uirevision: tree.search,
    margin: { l: 8, r: 8, t: 8, b: 8 }, legend: { orientation: "h", y: -0.02, yanchor: "top" },
    xaxis: { ...bare, range: span(...ends([...tree.x, rootX])) },
    yaxis: { ...bare, range: [-depth - 0.6, 0.6] } } };
}

function ends(values) {
  return values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)],
    [Infinity, -Infinity]);
}

function span(low, high) {
  const room = Math.max(1, 0.06 * (high - low));
  return [low - room, high + room];
}

async function drawTree() {
  const place = byId("t-picture");
  const library = await plotly();
  const shown = treeFigure();
  await library.react(place, shown.data, themed(shown.layout), { ...CONFIG, scrollZoom: true });
  if (!drawn.has(place)) {
    drawn.add(place);
    place.on("plotly_click", (event) => {
      const node = event.points.map((point) => point.customdata).find(isKnown);
      if (isKnown(node)) {
        choose(node).catch(trouble);
      }
    });
  }
}

async function chooseTree(number) {
  tree = trees[number];
  tree.place ??= new Map(tree.node.map((node, i) => [node, i]));
  byId("t-search").value = String(number);
  const said = tree.node.length === 0
    ? "This search has no candidate that its tree was told of."
    : `${tree.node.length} node(s)` + (tree.best === null
      ? ", none of them correct." : `; the best is node ${tree.best}.`);
  byId("t-said").textContent = said + (tree.ended ? "" : " The search has not ended.");
  chosen = null;
  await choose(tree.best ?? tree.node[0] ?? null);
}

async function choose(node) {
  chosen = node;
  const i = at(node);
  byId("t-node").value = node ?? "";
  byId("t-node").max = tree.node.at(-1) ?? 1;
  byId("t-best").disabled = tree.best === null;
  byId("t-parent").disabled = i === undefined || at(tree.parent[i]) === undefined;
  byId("t-back").disabled = i === undefined || i === 0;
  byId("t-next").disabled = i === undefined || i === tree.node.length - 1;
  await Promise.all([drawTree(), showPanel(node)]);
}

function startTree(loaded) {
  trees = loaded;
  const go = (work) => (event) => Promise.resolve(work(event)).catch(trouble);
  byId("t-search").addEventListener("change", go((event) => chooseTree(Number(event.target.value))));
  byId("t-node").addEventListener("change", go((event) => {
    const node = Number(event.target.value);
    return at(node) === undefined ? undefined : choose(node);
  }));
  byId("t-best").addEventListener("click", go(() => choose(tree.best)));
  byId("t-parent").addEventListener("click", go(() => choose(tree.parent[at(chosen)])));
  byId("t-back").addEventListener("click", go(() => choose(tree.node[at(chosen) - 1])));
  byId("t-next").addEventListener("click", go(() => choose(tree.node[at(chosen) + 1])));
  byId("t-fit").addEventListener("click", go(() => {
    const { xaxis, yaxis } = treeFigure().layout;
    return window.Plotly.relayout(byId("t-picture"),
      { "xaxis.range": xaxis.range, "yaxis.range": yaxis.range });
  }));
  document.querySelectorAll("[data-tree]").forEach((link) => {
    link.addEventListener("click", go(async () => {
      byId("tree").scrollIntoView();
      await chooseTree(Number(link.dataset.tree));
    }));
  });
}
