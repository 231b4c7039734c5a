// What stands around a Plotly picture and how one gets about in it: a legend that wraps, a button for the full screen, the
// keyboard. One module with live.js, which calls `framed`.

const TOUCHED = matchMedia("(hover: none)");
const DASHES = { solid: "", dash: "7 4", dot: "2 3", dashdot: "7 3 2 3", longdash: "11 4" };
const SYMBOLS = { star: "★", diamond: "◆", square: "■", "triangle-up": "▲", "triangle-down": "▼", x: "✕", cross: "✚" };
const LINE = 18; // pixels of a line there
const LETTER = 6.6; // pixels of a letter beside an axis, about
const NARROW = 560; // pixels below which a picture is that of a narrow screen, if it has one
const LEAST = { plain: 240, scaled: 330 }; // pixels of a picture, however low the window is
const SHEET = { plain: 500, scaled: 640 }; // pixels from which on a picture is a sheet, which one scrolls
const ABOVE = 110; // pixels of a window that its head and the words above a picture take
const STAYS = "[class*=st-key-headline], [class*=st-key-stays]"; // controls that stay in sight
const HOW = "Arrow keys go from point to point, Enter opens what stands behind one, F fills the screen";

function framed(root, picture, chosen) {
  const legend = document.createElement("ul");
  legend.className = "wb-legend";
  picture.before(legend);
  const told = add(root, "p", "wb-spoken");
  told.setAttribute("aria-live", "polite");
  const fill = () => (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
  const button = add(root, "button", "wb-fill");
  const corners = shape("svg", { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": true });
  const look = { fill: "none", stroke: "currentColor", "stroke-width": 1.75 };
  corners.append(shape("path", { d: "M1 5V1h4M11 1h4v4M15 11v4h-4M5 15H1v-4", ...look }));
  button.append(corners);
  Object.assign(button, { type: "button", title: "Full screen (F)", tabIndex: -1 });
  button.setAttribute("aria-label", "Full screen");
  button.addEventListener("click", fill);
  byKeyboard(picture, chosen, told, fill);
  let titles = {};

  return {
    // A figure as it is drawn here: its legend is ours, a finger scrolls the page, and the names of its axes fit.
    suited({ data, layout }) {
      titles = Object.fromEntries(axes(layout).map((name) => [name, layout[name].title?.text ?? ""]));
      const ours = { ...layout, showlegend: false };
      for (const name of axes(layout)) {
        ours[name] = { ...layout[name], title: { ...layout[name].title } };
        if (TOUCHED.matches) ours[name].fixedrange = true;
      }
      if (TOUCHED.matches) ours.dragmode = false;
      for (const [path, text] of Object.entries(wrapped(ours))) {
        const axis = ours[path.split(".")[0]];
        axis.title.text = text;
        const further = text.split("<br>").length - 1; // lines that need room beside the axis, or below it
        if (path[0] === "y") ours.margin = { ...ours.margin, l: Math.max(ours.margin?.l ?? 64, 64 + LINE * further) };
        if (path[0] === "x" && further) Object.assign(axis, { automargin: true, title: { ...axis.title, standoff: apart(text) } });
      }
      picture.wantsLegend = layout.showlegend ?? data.filter(named).length > 1;
      return { data, layout: ours };
    },
    dressed() {
      legend.replaceChildren(...(picture.wantsLegend ? entries(picture) : []));
      legend.hidden = !legend.children.length;
    },
    resized() {
      if (!picture.data) return null;
      const changed = Object.entries(wrapped(picture.layout)).filter(([path, text]) => text !== at(picture.layout, path));
      const { Plotly } = globalThis;
      const below = changed.filter(([path]) => path[0] === "x").map(([path, text]) => [path.replace("text", "standoff"), apart(text)]);
      return changed.length ? Plotly.relayout(picture, Object.fromEntries([...changed, ...below])) : Plotly.Plots.resize(picture);
    },
  };

  // The name of every axis in as many lines as its length allows.
  function wrapped(layout) {
    const { l = 64, r = 20, t = 12, b = 52 } = layout.margin ?? {};
    const [width, height] = [picture.clientWidth - l - r, picture.clientHeight - t - b];
    return Object.fromEntries(
      Object.entries(titles)
        .filter(([, text]) => text)
        .map(([name, text]) => {
          const [low, high] = layout[name].domain ?? [0, 1];
          const room = ((high - low) * (name[0] === "x" ? width : height)) / LETTER;
          return [`${name}.title.text`, lines(text, room)];
        }),
    );
  }
}

const apart = (text) => (text.includes("<br>") ? LINE + 6 : 10); // pixels between the numbers of an axis and its name
const axes = (layout) => Object.keys(layout).filter((name) => /^[xy]axis\d*$/.test(name));
const at = (layout, path) => path.split(".").reduce((within, name) => within?.[name], layout);
const named = ({ name, showlegend, visible }) => name && showlegend !== false && visible !== false;

// A text in lines of at most so many letters, broken between words.
function lines(text, most) {
  const broken = [""];
  for (const word of text.split(" ")) {
    const longer = broken.at(-1) ? `${broken.at(-1)} ${word}` : word;
    if (longer.length > most && broken.at(-1)) broken.push(word);
    else broken[broken.length - 1] = longer;
  }
  return broken.join("<br>");
}

// How high a picture may be, so that it is on one screen with the controls that stay in sight above it.
function roomFor(height, scaled = false) {
  if (document.fullscreenElement || height > (scaled ? SHEET.scaled : SHEET.plain)) return height;
  const controls = Math.max(0, ...[...document.querySelectorAll(STAYS)].map((e) => e.offsetHeight));
  return Math.min(height, Math.max(scaled ? LEAST.scaled : LEAST.plain, innerHeight - controls - ABOVE));
}

// The legend: what is drawn under one name is hidden and shown together.
function entries(picture) {
  const groups = new Map();
  picture._fullData.forEach((trace, number) => {
    const group = trace.legendgroup || `${number}`;
    if (!groups.has(group)) groups.set(group, { traces: [], shown: null });
    groups.get(group).traces.push(number);
    if (named(trace) && trace.showlegend) groups.get(group).shown ??= trace;
  });
  return [...groups.values()].filter(({ shown }) => shown).map(({ traces, shown }) => {
    const item = document.createElement("li");
    const button = add(item, "button");
    Object.assign(button, { type: "button", tabIndex: -1, title: "hide or show" });
    button.append(swatch(shown));
    add(button, "span", "", plainText(shown.name));
    button.setAttribute("aria-pressed", shown.visible === true);
    button.addEventListener("click", async () => {
      const hidden = button.getAttribute("aria-pressed") === "true";
      button.setAttribute("aria-pressed", !hidden);
      await globalThis.Plotly.restyle(picture, { visible: hidden ? "legendonly" : true }, traces);
    });
    return item;
  });
}

// Plotly reads names as HTML, and Python escapes them for it.
const plainText = (name) => new DOMParser().parseFromString(name, "text/html").body.textContent;

function swatch({ type, mode = "", line = {}, marker = {}, fill, fillcolor, opacity = 1 }) {
  const first = (value) => (Array.isArray(value) || ArrayBuffer.isView(value) ? value[0] : value);
  const colour = first(marker.color);
  const marks = [];
  if (type === "bar") {
    const edge = first(marker.line?.width) ? { stroke: first(marker.line.color), "stroke-width": 1.5 } : {};
    marks.push(shape("rect", { x: 8, y: 1, width: 12, height: 12, fill: colour, opacity: opacity * (first(marker.opacity) ?? 1), ...edge }));
  } else {
    if (fill && fill !== "none") marks.push(shape("rect", { x: 2, y: 2, width: 24, height: 10, fill: fillcolor }));
    if (mode.includes("lines")) {
      const look = { stroke: line.color, "stroke-width": Math.min(3, line.width), "stroke-dasharray": DASHES[line.dash] ?? "" };
      marks.push(shape("line", { x1: 1, x2: 27, y1: 7, y2: 7, ...look }));
    }
    if (mode.includes("markers")) {
      const [name, open] = String(first(marker.symbol) ?? "circle").split("-open");
      const edge = { stroke: first(marker.line?.color) ?? colour, "stroke-width": open !== undefined ? 2 : first(marker.line?.width) ?? 0 };
      if (SYMBOLS[name]) {
        const letter = shape("text", { x: 14, y: 12, "text-anchor": "middle", "font-size": 14, fill: colour });
        letter.textContent = SYMBOLS[name];
        marks.push(letter);
      } else marks.push(shape("circle", { cx: 14, cy: 7, r: 4.5, fill: open !== undefined ? "none" : colour, ...edge }));
    }
  }
  const svg = shape("svg", { viewBox: "0 0 28 14", width: 28, height: 14, "aria-hidden": true });
  svg.append(...marks);
  return svg;
}

function shape(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// One stop of the Tab key for a picture. Arrows go along a line or along bars, up and down from one to the next; of a heat
// map they go through its cells. What is said of a point is what the pointer would find there.
function byKeyboard(picture, chosen, told, fill) {
  picture.tabIndex = 0;
  picture.setAttribute("role", "application");
  picture.setAttribute("aria-roledescription", "picture");
  picture.setAttribute("aria-description", HOW);
  let place = null; // which trace, which of its points
  const drawn = new MutationObserver(tell); // of keys that come quickly, Plotly draws what the last one asks for some time later

  picture.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !picture._fullData) return;
    if (event.key.toLowerCase() === "f") return void (event.preventDefault(), fill());
    if (event.key === "Escape" && place !== null) return void leave();
    if (event.key === "Enter" && place !== null) return void open();
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const traces = reachable(picture);
    if (!traces.length) return;
    const known = place !== null && traces.some(({ number }) => number === place.trace);
    place = known ? moved(traces, place, step) : { trace: traces[0].number, point: traces[0].points[0] };
    show();
  });
  picture.addEventListener("blur", leave);

  function show() {
    const { xaxis, yaxis } = picture._fullData[place.trace];
    drawn.observe(picture, { childList: true, subtree: true });
    globalThis.Plotly.Fx.hover(picture, [{ curveNumber: place.trace, pointNumber: place.point }], `${xaxis}${yaxis}`);
    tell();
  }

  function tell() {
    const said = [...picture.querySelectorAll(".hoverlayer text")].map((text) => [...text.childNodes].map((e) => e.textContent).join(" "));
    told.textContent = said.join(", ");
  }

  function leave() {
    drawn.disconnect();
    if (place !== null && picture.data) globalThis.Plotly.Fx.unhover(picture);
    place = null;
    told.textContent = "";
  }

  function open() {
    if (!picture.classList.contains("wb-clickable")) return;
    const { customdata } = picture._fullData[place.trace];
    const [line, column] = [].concat(place.point);
    const data = column === undefined ? customdata?.[line] : customdata?.[line]?.[column];
    chosen({ curveNumber: place.trace, pointNumber: place.point, customdata: data ?? null });
  }
}

const STEPS = {
  ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
  PageUp: [0, -10], PageDown: [0, 10], Home: [0, -Infinity], End: [0, Infinity],
}; // prettier-ignore

// The traces that answer the pointer, each with the numbers of its points; of a heat map, its lines and columns.
function reachable(picture) {
  return picture._fullData
    .map((trace, number) => ({ trace, number }))
    .filter(({ trace }) => trace.visible === true && trace.hoverinfo !== "skip" && (trace.x?.length || trace.z?.length))
    .map(({ trace, number }) => {
      if (["heatmap", "contour"].includes(trace.type)) {
        const [low, high] = picture._fullLayout[trace.yaxis.replace("y", "yaxis")].range;
        return { number, cells: [trace.z.length, trace.z[0].length], up: Math.sign(high - low), points: [[0, 0]] };
      }
      const points = Array.from(trace.x.length ? trace.x : trace.y, (_, point) => point);
      return { number, points: points.filter((point) => Number.isFinite(Number(trace.y?.[point] ?? NaN)) || typeof trace.y?.[point] === "string") };
    })
    .filter(({ points }) => points.length);
}

function moved(traces, { trace, point }, [down, right]) {
  const at = traces.findIndex(({ number }) => number === trace);
  const within = (value, count) => Math.max(0, Math.min(count - 1, value));
  const { cells, up, points } = traces[at];
  if (cells) return { trace, point: [within(point[0] - up * down, cells[0]), within(point[1] + right, cells[1])] };
  const position = points.indexOf(point);
  if (right) return { trace, point: points[within(position + right, points.length)] };
  const next = traces[within(at + down, traces.length)];
  return { trace: next.number, point: next.points[within(position, next.points.length)] };
}
