// In the order in which a reader needs it: colours, tables, the tree's controls, then pictures.
async function start() {
  startTheme();
  startSorting(byId("searches"));
  startFilters(byId("searches"));
  document.documentElement.dataset.readable = String(Math.round(performance.now()));
  const main = await block("data-main");
  startTree(main.trees);
  onTheme.push(() => drawn.size && recolour());
  await drawCharts(main.charts);
  if (main.trees.length) {
    await chooseTree(main.first);
  }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

start().catch(trouble);
