// Crosshair, zoom and legend of the charts. Without this script the charts are complete, only still.
// Every text is set as text: nothing that a user named is read as markup.
(() => {
  "use strict";
  const NEAR = 10; // units within which a marker or the end of a line answers to the pointer
  const SVG = "http://www.w3.org/2000/svg";
  const hover = document.createElement("div");
  hover.className = "hover";
  hover.hidden = true;
  document.body.append(hover);
  const charts = [];

  const make = (tag, attributes, parent) => {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    parent.append(node);
    return node;
  };
  const number = (node, name) => Number(node.getAttribute(name));

  // -- numbers and ticks, by the rules of scale.py ---------------------------------------------------------------

  const trim = (value, digits) => String(Number(value.toPrecision(digits)));
  const write = (value, digits = 3) => {
    for (const [unit, size] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]])
      if (Math.abs(value) >= size * (1 - 0.5 * 10 ** -digits)) return trim(value / size, digits) + unit;
    return trim(value, digits);
  };
  const percent = (value, digits = 3) => trim(value * 100, digits) + "%";
  const digitsOf = (value, step) =>
    value && step ? Math.max(3, Math.floor(Math.log10(Math.abs(value)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9) + 1) : 3;

  const linearTicks = (low, high, most) => {
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
    const ticks = [];
    for (let k = Math.ceil(low / step - 1e-9); k <= Math.floor(high / step + 1e-9); k++) ticks.push(k * step);
    return ticks;
  };
  const logTicks = (low, high, most) => {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const decades = Math.log10(high / low);
    const fine = 3 * decades <= most ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(decades / most));
    const ticks = [];
    for (let k = first; k <= last; k += every) for (const m of fine) ticks.push(m * 10 ** k);
    const shown = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    return shown.length > 1 ? shown : linearTicks(low, high, Math.min(most, 5)).filter((tick) => tick > 0);
  };
  const DAY = 86400;
  const STEPS = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
    ...[1, 2, 4, 7, 14, 28, 91, 182, 364].map((days) => days * DAY),
  ];
  const iso = (seconds) => new Date(seconds * 1000).toISOString();
  const dateTicks = (low, high, most) => {
    const rough = (high - low) / most;
    const step = STEPS.find((s) => s >= rough) || STEPS[STEPS.length - 1];
    const ticks = [];
    let day = "";
    for (let k = Math.ceil(low / step); k <= Math.floor(high / step); k++) {
      const text = iso(k * step);
      const label = step < 60 ? text.slice(11, 19) : step < DAY ? text.slice(11, 16) : text.slice(5, 10);
      const under = step < DAY ? text.slice(0, 10) : text.slice(0, 4);
      ticks.push([k * step, under === day ? [label] : [label, under]]);
      day = under;
    }
    return ticks;
  };

  // -- one chart -------------------------------------------------------------------------------------------------

  // The points of a line, from its path (see markup.py): pieces without a gap, each with coordinates and values.
  const points = (path) => {
    if (path.points) return path.points;
    const values = path.dataset.y.split(" ").map(Number);
    const numbers = (path.getAttribute("d").match(/[Mlhv]|-?\d*\.?\d+/g) || []);
    const pieces = [];
    let x = 0, y = 0, k = 0;
    for (let at = 0; at < numbers.length; at += 3) {
      const command = numbers[at];
      if (command === "M") {
        x = Number(numbers[at + 1]);
        pieces.push({ x: [], value: [] });
      } else x += Number(numbers[at + 1]);
      if (command === "h") at++; // h dx v dy
      const piece = pieces[pieces.length - 1];
      piece.x.push(x);
      piece.value.push(values[k++]);
    }
    return (path.points = pieces);
  };

  // The value of a line at x: of a step line the one that holds there, else that of the nearest point.
  const valueAt = (path, x, near) => {
    const step = "step" in path.dataset;
    for (const piece of points(path)) {
      const end = piece.x.length - 1;
      if (x < piece.x[0] - near || x > piece.x[end] + near) continue;
      let low = 0, high = end;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (piece.x[middle] <= x) low = middle;
        else high = middle;
      }
      const right = step ? x >= piece.x[high] : Math.abs(piece.x[high] - x) < Math.abs(piece.x[low] - x);
      return piece.value[right ? high : low];
    }
    return null;
  };

  const attach = (svg) => {
    const scale = svg.dataset.scale;
    const zoomable = scale !== undefined;
    const low = Number(svg.dataset.low), high = Number(svg.dataset.high);
    const panels = [...svg.querySelectorAll(".panel")].map((group) => {
      const field = group.querySelector(".field");
      const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => number(field, name));
      const grid = group.querySelector(".grid.x");
      return { group, grid, upright: grid.getAttribute("d"), zoom: group.querySelector(".zoom"), left, top, width, height };
    });
    const { left, width } = panels[0];
    const last = panels[panels.length - 1];
    const marks = [...svg.querySelectorAll(".at")].map((node) => {
      const [x, y] = node.getAttribute("transform").match(/-?[\d.]+/g).map(Number);
      return { node, x, y };
    });
    const ticks = svg.querySelector(".ticks");
    const original = [...ticks.childNodes];
    let k = 1, t = 0; // A point at x is drawn at k * x + t.

    // Our own box replaces the browser's slow one.
    for (const title of svg.querySelectorAll(".at > title, .bar > title, .cell > title")) {
      title.parentNode.dataset.tip = title.textContent;
      title.remove();
    }

    const valueOf = (x) => {
      const share = ((x - t) / k - left) / width;
      return scale === "log" ? low * (high / low) ** share : low + (high - low) * share;
    };
    const placeOf = (value) => {
      const share = scale === "log" ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
      return k * (left + share * width) + t;
    };
    const written = (x) => {
      const value = valueOf(x), unit = svg.dataset.unit || "";
      const finest = Math.abs(valueOf(x + 1) - value);
      if (scale === "date") return iso(value).slice(0, finest < 30 ? 19 : 16).replace("T", " ") + unit;
      return (svg.dataset.format === "percent" ? percent : write)(value, digitsOf(value, finest)) + unit;
    };

    const draw = () => {
      const whole = k === 1;
      for (const panel of panels) {
        if (whole) panel.zoom.removeAttribute("transform");
        else panel.zoom.setAttribute("transform", `matrix(${k} 0 0 1 ${t} 0)`);
      }
      for (const { node, x, y } of marks) {
        const at = k * x + t;
        node.setAttribute("transform", `translate(${at} ${y})`);
        node.style.display = at < left - 1 || at > left + width + 1 ? "none" : "";
      }
      if (whole) {
        ticks.replaceChildren(...original);
        for (const panel of panels) panel.grid.setAttribute("d", panel.upright);
        return;
      }
      const from = valueOf(left), to = valueOf(left + width), room = scale === "date" ? 88 : 50;
      const most = Math.min(Math.max(2, Math.round(width / room)), 12);
      let every;
      if (scale === "date") every = dateTicks(from, to, most);
      else {
        const values = (scale === "log" ? logTicks : linearTicks)(from, to, most);
        const step = Math.min(...values.slice(1).map((value, n) => value - values[n]));
        const label = svg.dataset.format === "percent" ? percent : write;
        every = values.map((value) => [value, [label(value, digitsOf(value, isFinite(step) ? step : 0))]]);
      }
      ticks.replaceChildren();
      for (const [value, lines] of every)
        lines.forEach((line, n) => {
          const node = make("text", { x: placeOf(value), y: number(ticks, "data-y") + 13 * n, class: "tick x" }, ticks);
          node.textContent = line;
        });
      for (const panel of panels) {
        const lines = every.map(([value]) => `M${placeOf(value).toFixed(1)} ${panel.top}v${panel.height}`);
        panel.grid.setAttribute("d", lines.join(""));
      }
    };

    const chart = {
      link: [scale, svg.dataset.low, svg.dataset.high].join(),
      // Shows the values from a to b; all of them without these.
      show(a, b) {
        k = 1;
        t = 0;
        if (a !== undefined) {
          const [x0, x1] = [placeOf(a), placeOf(b)];
          k = width / (x1 - x0);
          t = left - k * x0;
        }
        draw();
      },
    };
    charts.push(chart);
    // Charts of the same period zoom together.
    const linked = () => (scale === "date" || svg.dataset.unit ? charts.filter((other) => other.link === chart.link) : [chart]);

    const cross = make("path", { class: "cross", d: "" }, svg);
    const chosen = make("rect", { class: "chosen", y: panels[0].top, width: 0, height: last.top + last.height - panels[0].top }, svg);
    const names = [...svg.querySelectorAll("path[data-y]")].map((path) => path.dataset.name);
    const lines = names.length > 0;
    const ambiguous = new Set(names).size < names.length; // A name in two panels needs the panel's title beside it.
    let start = null;

    const at = (event) => {
      const box = svg.getBoundingClientRect();
      const units = svg.viewBox.baseVal.width / box.width;
      return [(event.clientX - box.left) * units, (event.clientY - box.top) * units];
    };
    const inside = (x, y) => x >= left && x <= left + width && y >= panels[0].top && y <= last.top + last.height;
    const clamp = (x) => Math.min(Math.max(x, left), left + width);

    const rows = (x) => {
      const table = document.createElement("table");
      for (const panel of panels) {
        let titled = !ambiguous;
        for (const path of panel.group.querySelectorAll("path[data-y]")) {
          if (path.parentNode.classList.contains("off")) continue;
          const value = valueAt(path, (x - t) / k, NEAR / k);
          if (value === null) continue;
          if (!titled) {
            const head = table.insertRow().insertCell();
            head.colSpan = 2;
            head.className = "over";
            head.textContent = panel.group.querySelector(".title").textContent;
            titled = true;
          }
          const row = table.insertRow();
          const name = row.insertCell(), cell = row.insertCell();
          const swatch = document.createElement("i");
          swatch.style.setProperty("--c", path.parentNode.style.getPropertyValue("--c"));
          name.append(swatch, path.dataset.name);
          cell.textContent = (path.dataset.format === "percent" ? percent : write)(value) + (path.dataset.unit || "");
        }
      }
      return table;
    };
    const nearest = (x, y) => {
      let best = null, least = NEAR;
      for (const mark of marks) {
        if (!mark.node.dataset.tip || mark.node.parentNode.classList.contains("off")) continue;
        const distance = Math.hypot(k * mark.x + t - x, mark.y - y);
        if (distance <= least) [best, least] = [mark.node, distance];
      }
      return best;
    };
    const place = (event) => {
      hover.hidden = false;
      const { width: wide, height: tall } = hover.getBoundingClientRect();
      const right = event.clientX + 16 + wide < innerWidth;
      const x = right ? event.clientX + 16 : Math.max(4, event.clientX - 16 - wide);
      const y = Math.min(Math.max(4, event.clientY + 16), Math.max(4, innerHeight - tall - 4));
      hover.style.transform = `translate(${x}px,${y}px)`;
    };
    const leave = () => {
      hover.hidden = true;
      cross.setAttribute("d", "");
    };

    svg.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (start !== null) {
        const [from, to] = [start, clamp(x)].sort((a, b) => a - b);
        chosen.setAttribute("x", from);
        chosen.setAttribute("width", to - from);
      }
      const tip = nearest(x, y) || event.target.closest("[data-tip]");
      const field = zoomable && inside(x, y);
      cross.setAttribute("d", field && lines ? panels.map((panel) => `M${x.toFixed(1)} ${panel.top}v${panel.height}`).join("") : "");
      if (!tip && !field) return leave();
      const title = document.createElement("b");
      if (field) title.textContent = written(x);
      if (tip) hover.replaceChildren(...(field && lines ? [title] : []), tip.dataset.tip);
      else {
        const table = rows(x);
        if (!table.rows.length) {
          hover.hidden = true;
          return;
        }
        hover.replaceChildren(title, table);
      }
      place(event);
    });
    svg.addEventListener("pointerleave", leave);

    if (zoomable) {
      svg.classList.add("zoomable");
      svg.addEventListener("pointerdown", (event) => {
        const [x, y] = at(event);
        if (event.button !== 0 || event.pointerType === "touch" || !inside(x, y)) return;
        start = x;
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointerup", (event) => {
        if (start === null) return;
        const [from, to] = [start, clamp(at(event)[0])].sort((a, b) => a - b);
        start = null;
        chosen.setAttribute("width", 0);
        if (to - from < 5) return;
        const [a, b] = [valueOf(from), valueOf(to)];
        for (const other of linked()) other.show(a, b);
      });
      svg.addEventListener("pointercancel", () => {
        start = null;
        chosen.setAttribute("width", 0);
      });
      svg.addEventListener("dblclick", (event) => {
        if (inside(...at(event))) for (const other of linked()) other.show();
      });
    }

    // The legend: every entry switches its group. Buttons inside an image are hidden from assistive technology, so the
    // chart becomes a group.
    const keys = [...svg.querySelectorAll(".key")];
    if (keys.length) svg.setAttribute("role", "group");
    for (const key of keys) {
      key.classList.add("switch");
      for (const [name, value] of [["role", "button"], ["tabindex", "0"], ["aria-pressed", "true"]]) key.setAttribute(name, value);
      const turn = () => {
        const off = key.getAttribute("aria-pressed") === "true";
        for (const node of svg.querySelectorAll(`[data-g="${key.dataset.g}"]`)) {
          if (node.classList.contains("key")) {
            node.classList.toggle("faded", off);
            node.setAttribute("aria-pressed", String(!off));
          } else node.classList.toggle("off", off);
        }
      };
      key.addEventListener("click", turn);
      key.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        turn();
      });
    }
  };

  document.querySelectorAll("svg.chart").forEach(attach);
  const hint = document.getElementById("chart-hint");
  if (hint) hint.hidden = false;
})();
