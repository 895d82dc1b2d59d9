// The table of searches: sorted by a click on a column's name, filtered as one types.
function cellValue(row, column, kind) {
  const cell = row.cells[column];
  if (kind === "text") {
    return cell.textContent.trim().toLowerCase();
  }
  return cell.dataset.v === "" ? null : Number(cell.dataset.v);
}

function sortRows(table, column, kind, isDescending) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [cellValue(row, column, kind), row]);
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) {
      return (a === null) - (b === null); // What is not known comes last, either way.
    }
    const order = a < b ? -1 : a > b ? 1 : 0;
    return isDescending ? -order : order;
  });
  body.append(...keyed.map(([, row]) => row));
}

function startSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", (event) => {
      const kind = event.currentTarget.dataset.sort;
      const was = head.getAttribute("aria-sort");
      const isDescending = was ? was === "ascending" : kind === "number";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      sortRows(table, column, kind, isDescending);
    });
  });
}

function startFilters(table) {
  const rows = [...table.tBodies[0].rows];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  const filter = () => {
    const words = byId("f-text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const arm = byId("f-arm").value;
    const outcome = byId("f-outcome").value;
    const isWins = byId("f-wins").checked;
    let shown = 0;
    for (const row of rows) {
      const fits = (!arm || row.dataset.arm === arm)
        && (!outcome || row.dataset.outcome === outcome)
        && (!isWins || row.dataset.win === "1")
        && words.every((word) => texts.get(row).includes(word));
      row.hidden = !fits;
      shown += fits;
    }
    byId("f-count").textContent = `${shown} of ${rows.length}`;
    byId("f-none").hidden = shown > 0;
  };
  byId("filters").addEventListener("input", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  filter(); // A browser may bring back what was typed before a reload.
}
