// The side panel: everything that is known of one candidate. What is missing is said.
const NO_BLOCK = -1;

function facts(pairs) {
  const list = el("dl");
  for (const [name, value] of pairs) {
    if (isKnown(value) && value !== "") {
      list.append(el("dt", {}, name), el("dd", {}, value));
    }
  }
  return list;
}

function part(title, isOpen, ...children) {
  return el("details", isOpen ? { open: "" } : {}, el("summary", {}, title), ...children);
}

const note = (text) => el("p", { class: "note" }, text);

function sourceView(runs) {
  const code = el("pre", {});
  for (const [kind, text] of runs) {
    code.append(kind ? el("span", { class: `tok-${kind}` }, text) : text);
  }
  return code;
}

function changesView(lines) {
  const view = el("pre", {});
  for (const [number, line] of lines.entries()) {
    const kind = number < 2 || line.startsWith("@@") ? " hunk"
      : line.startsWith("+") ? " add" : line.startsWith("-") ? " cut" : "";
    view.append(el("span", { class: `line${kind}` }, line));
  }
  return view;
}

function verdictView(v) {
  const over = { eager: v.eager_us, "torch.compile": v.compile_us,
    "max-autotune": v.max_autotune_us, "the given kernel": v.given_us };
  const reached = v.kind !== "correct" ? null
    : `${times(v.speedup)} over ${v.baseline} (interval: ${between(v.speedup_ci, times)}), `
      + (v.is_win ? "surely faster" : "no win: not surely faster by more than 1 %")
      + (v.degenerate ? "; the problem is degenerate, so this means little" : "");
  const gates = v.gates.map((gate) => `${gate.name} ${gate.passed ? "passed" : "failed"}`
    + (gate.passed || !gate.detail ? "" : `: ${gate.detail}`));
  const failed = v.failed_checks.map((check) => `${check.name}: ${check.detail}`);
  return part("Verdict", true, facts([
    ["speed-up", reached],
    ["time", v.kind === "correct"
      ? `${microseconds(v.time_us)} a call (95 %: ${between(v.time_ci_us, microseconds)})` : null],
    ["baseline beside it", isKnown(v.baseline_us)
      ? `${v.baseline} ${microseconds(v.baseline_us)}, call by call` : null],
    ["measured before", v.kind === "correct" ? Object.entries(over).map(([name, value]) =>
      `${name} ${isKnown(value) ? microseconds(value) : "not measured"}`).join(", ") : null],
    ["not measured", v.missing_baselines.join("; ")],
    ["speed of light", isKnown(v.sol_us)
      ? `${microseconds(v.sol_us)}; the candidate reaches ${percent(v.sol_share)} of it` : null],
    ["timed by", isKnown(v.protocol) ? `${v.protocol}, ${v.num_pairs} pairs` : null],
    ["reason", v.reason],
    ["ladder", v.ladder],
    ["error", v.error ? `largest ${isKnown(v.error.max_abs) ? figure(v.error.max_abs) : "not finite"}`
      + `, relative ${isKnown(v.error.rel_norm) ? v.error.rel_norm.toExponential(2) : "not finite"}`
      + (isKnown(v.error.rho) ? `, ρ ${figure(v.error.rho)}` : "") : null],
    ["gates", gates.join("; ")],
    ["checks", `${v.passed_checks} passed`
      + (failed.length ? `; failed: ${failed.join("; ")}` : "")],
    ["device", `${v.device}, track ${v.track}`],
    ["in libraries", isKnown(v.library_share) ? `${percent(v.library_share)} of device time` : null],
    ["sandbox", v.sandbox],
  ]), v.log ? el("pre", { class: "wrap" }, v.log) : null);
}

function bars(stages, unit) {
  const box = el("div");
  const most = Math.max(...Object.values(stages), 1e-9);
  for (const [name, value] of Object.entries(stages)) {
    const bar = el("i");
    bar.style.width = `${(100 * value) / most}%`;
    box.append(el("div", { class: "bar" }, el("span", {}, name),
      el("span", { class: "n" }, `${figure(value)} ${unit}`), bar));
  }
  return box;
}

function timelineView(v, m) {
  const parts = [Object.keys(v.stages_s).length
    ? el("div", {}, note("From asking to verdict, seconds in each stage:"), bars(v.stages_s, "s"))
    : note("No stages were recorded.")];
  const t = m.timeline;
  if (t) {
    parts.push(note("One call, as the profiler saw it:"), facts([
      ["end to end", microseconds(t.e2e_us)], ["device busy", microseconds(t.busy_us)],
      ["launches", figure(t.launches)],
      ["idle share", isKnown(t.launch_overhead_pct) ? `${figure(t.launch_overhead_pct)} %` : UNKNOWN],
      ["longest gaps", t.gaps_us.length ? t.gaps_us.slice(0, 5).map(microseconds).join(", ") : "none on record"],
      ["host blocked", isKnown(t.syncs) ? `${t.syncs} times, ${microseconds(t.sync_us)}` : UNKNOWN],
      ["copies", microseconds(t.memcpy_us)]]));
  } else {
    parts.push(note("No device timeline was recorded."));
  }
  return part("Timeline", false, ...parts);
}

function roofFigure(roof, name) {
  const low = Math.min(roof.intensity, roof.ridge) / 10;
  const high = Math.max(roof.intensity, roof.ridge) * 10;
  const curve = [low, roof.ridge, high];
  const reachable = Math.min(roof.peak_flops, roof.intensity * roof.peak_bytes);
  return { data: [
    { type: "scatter", mode: "lines", name: "roof", x: curve, hoverinfo: "skip",
      y: curve.map((x) => Math.min(roof.peak_flops, x * roof.peak_bytes)),
      line: { color: "#808080", width: 2 } },
    { type: "scatter", mode: "lines", name: "headroom", hoverinfo: "skip",
      x: [roof.intensity, roof.intensity], y: [roof.reached_flops, reachable],
      line: { color: "#808080", width: 1, dash: "dot" } },
    { type: "scatter", mode: "markers", name, x: [roof.intensity], y: [roof.reached_flops],
      marker: { size: 14, symbol: "star", color: "#D55E00" },
      hovertemplate: "%{y:.3s}FLOP/s at %{x:.3g} FLOP/byte<extra></extra>" }],
    layout: { height: 280, margin: { l: 60, r: 12, t: 8, b: 44 }, showlegend: true,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
      xaxis: { type: "log", dtick: "D2", tickformat: "~s", title: { text: "FLOP per byte" } },
      yaxis: { type: "log", dtick: "D2", tickformat: "~s",
        title: { text: "FLOP/s of the reference's work" } } } };
}

function rooflineView(m, node) {
  const r = m.roofline;
  if (m.note && !r) {
    return part("Roofline", false, note(m.note));
  }
  if (!r) {
    return part("Roofline", false, note("The evidence has no roofline."));
  }
  const place = el("div", { class: "plot", role: "img", "aria-label": "roofline of the candidate" });
  const opened = part("Roofline", false, facts([
    ["class", `${r.class ?? "unknown"} (by theory ${r.theoretical ?? "unknown"}, measured `
      + `${r.measured ?? "not"}; confidence ${r.confidence ?? "unknown"})`],
    ["speed of light", microseconds(r.sol_us)],
    ["reachable", microseconds(r.reachable_us)],
    ["of speed of light", m.roof ? percent(m.roof.sol_share) : null],
    ["matrix work", r.precision]]),
    m.roof ? place : note("There is no picture: the time, or a figure of the roof, was not recorded."),
    m.roof && m.roof.note ? note(m.roof.note) : null);
  if (m.roof) {
    opened.addEventListener("toggle", () => {
      if (opened.open && !drawn.has(place)) {
        draw(place, roofFigure(m.roof, `node ${node}`)).catch(trouble);
      }
    });
  }
  return opened;
}

function kernelsView(m) {
  if (!m.kernels || !m.kernels.length) {
    return null;
  }
  const head = el("tr", {}, ...["kernel", "owner", "launches", "time", "share", "registers"]
    .map((name, i) => el("th", { scope: "col", class: i > 1 ? "n" : "" }, name)));
  const rows = m.kernels.map((k) => el("tr", {}, el("th", { scope: "row" }, k.name),
    el("td", {}, k.owner), el("td", { class: "n" }, figure(k.launches)),
    el("td", { class: "n" }, microseconds(k.time_us)), el("td", { class: "n" }, percent(k.share)),
    el("td", { class: "n" }, figure(k.registers))));
  return part(`Kernels (${m.level})`, false, el("div", { class: "scroll" },
    el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows))),
    m.kernels_left_out ? note(`${m.kernels_left_out} more kernel(s) are left out.`) : null);
}

function findingView(f) {
  const observed = Object.entries(f.observed || {}).map(([name, value]) => `${name} ${figure(value)}`);
  return el("div", { class: `finding ${f.severity}` },
    el("p", {}, el("b", {}, `${f.severity}: ${f.title ?? f.tool}`), ` (${f.tool})`),
    el("p", {}, f.summary ?? ""), f.root_cause ? el("p", {}, `Cause: ${f.root_cause}`) : null,
    el("ol", {}, ...(f.recommendations || []).map((each) => el("li", {}, each))),
    f.expected_improvement ? el("p", { class: "muted" }, `Expected: ${f.expected_improvement}`) : null,
    observed.length ? el("p", { class: "muted" }, `Observed: ${observed.join(", ")}`) : null);
}

function findingsView(m) {
  const made = [...(m.findings || []), ...(m.remarks || [])];
  const parts = made.map(findingView);
  if (m.note && !made.length) {
    parts.push(note(m.note));
  } else if (!m.findings) {
    parts.push(note("No tools were asked about this candidate."));
  } else if (!m.findings.length) {
    parts.push(note("The tools found nothing."));
  }
  if (m.left_out) {
    parts.push(note(`${m.left_out} more finding(s) were left out of the prompt.`));
  }
  if (m.silent && m.silent.length) {
    parts.push(note(`Without the figures that they need: ${m.silent.join(", ")}.`));
  }
  if (m.analysis) {
    parts.push(el("p", {}, el("b", {}, "A model's analysis: "),
      m.analysis.summary ?? m.analysis.fault ?? ""),
      el("ol", {}, ...(m.analysis.steps || []).map((step) => el("li", {}, step))));
  }
  return part(`Findings (${made.length})`, made.length > 0, ...parts);
}

function messagesView(d, texts) {
  const parts = d.messages.map(([role, place]) => el("details", {}, el("summary", {},
    `${role} (${texts[place].length.toLocaleString("en")} characters)`),
    el("pre", { class: "wrap" }, texts[place])));
  if (!d.sent) {
    parts.push(note("No prompt is on record: whoever wrote this candidate is no model."));
  }
  for (const answer of d.answers) {
    const about = [answer.note, answer.fault ? `no candidate: ${answer.fault}` : "",
      answer.tokens_out ? `${answer.tokens_in} tokens in, ${answer.tokens_out} out` : "",
      answer.cost_usd ? `$${answer.cost_usd.toFixed(4)}` : "",
      answer.calls.length ? `called ${answer.calls.join(", ")}` : ""].filter(Boolean);
    parts.push(el("details", {}, el("summary", {}, `answer ${answer.index + 1} of ${d.answers.length}`),
      about.length ? note(about.join("; ")) : null,
      answer.reasoning === null ? null : el("pre", { class: "wrap" }, texts[answer.reasoning]),
      answer.text === null ? note("It has no words of its own.")
        : el("pre", { class: "wrap" }, texts[answer.text])));
  }
  return part("Messages", false, ...parts);
}

function headView(i, strategy) {
  const reached = tree.kind[i] === "correct" ? `, ${times(tree.speedup[i])}` : "";
  return el("div", {}, el("h3", {}, `Node ${tree.node[i]}: ${tree.kind[i]}${reached}`),
    strategy ? el("p", {}, strategy) : null);
}

async function showPanel(node) {
  const panel = byId("t-panel");
  const i = node === null ? undefined : at(node);
  if (i === undefined) {
    panel.replaceChildren(note("There is no node to show."));
    return;
  }
  const parent = at(tree.parent[i]) === undefined ? "ROOT" : `node ${tree.parent[i]}`;
  const stands = ["reward", `${figure(tree.reward[i])}, ${tree.visits[i]} visit(s), child of ${parent}`];
  if (tree.block[i] === NO_BLOCK) {
    panel.replaceChildren(headView(i, tree.strategy[i]), facts([stands]),
      note("Its source and details were left out of this file (--candidates)."));
    return;
  }
  const held = await block(`data-block-${tree.block[i]}`);
  if (chosen !== node) {
    return; // Another was chosen meanwhile.
  }
  const d = held.nodes[String(node)];
  panel.replaceChildren(...[
    headView(i, d.strategy),
    facts([stands, ["written by", `${d.programmer} (${d.mode}), in ${d.language}`
      + (d.cached ? "; verdict known before" : "")], ["candidate", d.candidate]]),
    verdictView(d.verdict),
    d.changes === null ? null : part("Changes from the parent", true, d.changes.length
      ? changesView(d.changes) : note("The same source as its parent.")),
    part("Source", d.changes === null, sourceView(d.source)),
    rooflineView(d.measured, node),
    findingsView(d.measured),
    kernelsView(d.measured),
    timelineView(d.verdict, d.measured),
    messagesView(d.dialogue, held.texts),
  ].filter(Boolean));
  panel.scrollTop = 0;
}
