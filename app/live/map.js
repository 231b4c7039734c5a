// Rows as points in the plane, coloured by what their sets are like where the sliders stand. Points are written as pixels:
// a million of them are drawn in some ten milliseconds, without WebGL. A lasso selects, or with Shift a box; a click opens the
// row below it; the wheel zooms; Escape clears.
const REACH = 8; // pixels between the pointer and the row it means
function map(root, data, channel, live) {
  root.setAttribute("role", "figure");
  root.setAttribute("aria-label", data.title);
  const legend = add(root, "ul", "wb-legend");
  const area = add(root, "div", "wb-map-area");
  const canvas = add(area, "canvas");
  const over = add(area, "canvas", "wb-lasso");
  over.tabIndex = 0;
  over.setAttribute("role", "application");
  over.setAttribute("aria-label", `${data.title}. Draw around points to select them, Escape selects all`);
  const told = add(area, "output", "wb-told");
  told.hidden = true;
  add(area, "p", "wb-hint", "Draw around rows to select them (with Shift: a box). A click opens a row.");
  let wanted;
  let [points, entries, codes, chosen] = [];
  let n = 0;
  let [place, drawing] = [null, null];
  let [begun, far] = [null, 0]; // where the pointer was pressed, and how many pixels it has gone from there
  let view = { x: 0, y: 0, scale: 1 }; // what of the unit square is shown

  function change(given) {
    wanted = given;
    points = matrix(given.positions);
    entries = matrix(given.entries);
    codes = given.codes ? matrix(given.codes) : null;
    chosen = given.chosen ? matrix(given.chosen) : null; // the rows that are selected; the others are ghosts
    n = points.numbers.length / 2;
    legend.replaceChildren(...given.names.map((name, index) => {
      const item = document.createElement("li");
      add(item, "span", "wb-dot").style.background = given.palette[index];
      add(item, "span", "", name);
      return item;
    }));
    paint();
  }

  const sizeOf = (row) => {
    const [rank, from] = [wanted.ranks[place] ?? 0, row * entries.columns];
    let size = 0;
    while (size < entries.columns - 1 && entries.numbers[from + size] > rank) size += 1;
    return size;
  };

  // What a row is coloured by: its size, whether it is correct, or its group.
  function code(row) {
    if (codes) return codes.numbers[row];
    const [rank, from] = [wanted.ranks[place] ?? 0, row * entries.columns];
    if (wanted.colour === "correct") return entries.numbers[from + entries.columns - 1] > rank ? 0 : 1;
    return Math.min(sizeOf(row), wanted.palette.length - 1);
  }

  function paint() {
    const [width, height] = [area.clientWidth, area.clientHeight];
    if (!width || !height || place === null) return;
    Object.assign(canvas, { width, height });
    Object.assign(over, { width, height });
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const palette = wanted.palette.map((colour) => packed(colour, 255));
    const ghosts = wanted.palette.map((colour) => packed(colour, 46));
    const dot = n > 100_000 ? 1 : n > 10_000 ? 2 : 4;
    for (const ghost of chosen ? [true, false] : [false]) {
      for (let row = 0; row < n; row += 1) {
        if (chosen && Boolean(chosen.numbers[row]) === ghost) continue;
        const x = Math.round((points.numbers[2 * row] - view.x) * view.scale * (width - 16) + 8 - dot / 2);
        const y = Math.round((1 - points.numbers[2 * row + 1] - view.y) * view.scale * (height - 16) + 8 - dot / 2);
        if (x < 0 || y < 0 || x + dot >= width || y + dot >= height) continue;
        const colour = (ghost ? ghosts : palette)[code(row)];
        for (let down = 0; down < dot; down += 1) pixels.fill(colour, (y + down) * width + x, (y + down) * width + x + dot);
      }
    }
    context.putImageData(image, 0, 0);
    outline(drawing ?? wanted.lasso ?? []);
    root.dataset.place = place;
  }

  function outline(polygon) {
    const context = over.getContext("2d");
    context.clearRect(0, 0, over.width, over.height);
    if (!drawing) name(context);
    if (polygon.length < 2) return;
    Object.assign(context, { strokeStyle: getComputedStyle(root).color, lineWidth: 1.5 });
    context.setLineDash([4, 3]);
    context.beginPath();
    for (const [x, y] of polygon) {
      context.lineTo(...pixel(x, y));
    }
    context.closePath();
    context.stroke();
  }

  // The names of the islands, none over another: the larger ones come first.
  function name(context) {
    const look = getComputedStyle(root);
    Object.assign(context, { font: `600 13px ${look.fontFamily}`, textAlign: "center", textBaseline: "bottom", lineJoin: "round" });
    Object.assign(context, { lineWidth: 4, strokeStyle: look.getPropertyValue("--st-background-color"), fillStyle: look.color });
    context.setLineDash([]);
    const taken = [];
    for (const [text, x, y] of wanted.islands) {
      const half = context.measureText(text).width / 2 + 4;
      const [across, upper] = pixel(x, y);
      const down = Math.max(18, upper - 4);
      const at = Math.max(half, Math.min(over.width - half, across));
      if (Math.abs(at - across) > half || upper < 0 || upper > over.height) continue;
      if (taken.some(([left, right, line]) => Math.abs(line - down) < 18 && left < at + half && right > at - half)) continue;
      taken.push([at - half, at + half, down]);
      context.strokeText(text, at, down);
      context.fillText(text, at, down);
    }
  }

  // The row nearest to the pointer, among those that are selected; null if none is near.
  function under({ offsetX, offsetY }) {
    let [nearest, least] = [null, REACH ** 2];
    for (let row = 0; row < n; row += 1) {
      if (chosen && !chosen.numbers[row]) continue;
      const [x, y] = pixel(points.numbers[2 * row], points.numbers[2 * row + 1]);
      const distance = (x - offsetX) ** 2 + (y - offsetY) ** 2;
      if (distance < least) [nearest, least] = [row, distance];
    }
    return nearest;
  }

  // What the row below the pointer is like: the size of its set, whether it is correct, its group.
  function tell(event) {
    const row = under(event);
    over.classList.toggle("wb-row", row !== null);
    told.hidden = row === null;
    if (row === null) return;
    const size = sizeOf(row);
    const words = [`${size}${size === entries.columns - 1 ? "+" : ""} ${size === 1 ? "class" : "classes"}`];
    if (wanted.colour !== "size") words.push(wanted.names[code(row)]);
    told.textContent = words.join(", ");
    told.style.translate = `${Math.min(event.offsetX + 12, over.width - told.offsetWidth - 4)}px ${Math.max(event.offsetY - 30, 4)}px`;
  }

  const pixel = (x, y) => [(x - view.x) * view.scale * (over.width - 16) + 8, (1 - y - view.y) * view.scale * (over.height - 16) + 8];
  const at = ({ offsetX, offsetY }) => [
    (offsetX - 8) / (over.width - 16) / view.scale + view.x,
    1 - ((offsetY - 8) / (over.height - 16) / view.scale + view.y),
  ];
  over.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    over.setPointerCapture(event.pointerId);
    drawing = [at(event)];
    [begun, far] = [event, 0];
    told.hidden = true;
  });
  over.addEventListener("pointermove", (event) => {
    if (!drawing) return tell(event);
    far = Math.max(far, Math.hypot(event.offsetX - begun.offsetX, event.offsetY - begun.offsetY));
    if (event.shiftKey) drawing = box(drawing[0], at(event));
    else drawing.push(at(event));
    outline(drawing);
  });
  over.addEventListener("pointerleave", () => (told.hidden = true));
  over.addEventListener("pointerup", (event) => {
    const polygon = thinned(drawing ?? []);
    drawing = null;
    outline(wanted.lasso ?? []);
    if (far > REACH && polygon.length > 2) return answer(polygon);
    const row = under(event);
    if (row !== null || wanted.lasso) answer(row ?? []);
  });
  // A finger that goes up or down scrolls the page; one that goes sideways first draws.
  over.addEventListener("pointercancel", () => {
    drawing = null;
    outline(wanted.lasso ?? []);
  });
  over.addEventListener("keydown", ({ key }) => key === "Escape" && answer([]));
  over.addEventListener("dblclick", () => {
    view = { x: 0, y: 0, scale: 1 };
    paint();
  });
  over.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, y] = at(event);
    const scale = Math.max(1, Math.min(60, view.scale * (event.deltaY < 0 ? 1.25 : 0.8)));
    const [left, top] = [event.offsetX - 8, event.offsetY - 8];
    view = { scale, x: x - left / (over.width - 16) / scale, y: 1 - y - top / (over.height - 16) / scale };
    if (scale === 1) view = { x: 0, y: 0, scale };
    paint();
  }, { passive: false });
  const answer = (given) => live.trigger("clicked", { point: 0, data: given });

  change(data);
  const size = onResize(area, paint);
  return {
    draw: (where) => {
      place = where;
      paint();
    },
    change,
    stop: () => size.disconnect(),
  };
}

// The corners of a box between two opposite ones.
const box = ([left, top], [right, bottom]) => [[left, top], [right, top], [right, bottom], [left, bottom]];

// At most 24 corners, each a whole number of thousandths: short enough for an address.
function thinned(polygon) {
  const step = Math.max(1, Math.ceil(polygon.length / 24));
  return polygon.filter((_, index) => index % step === 0).map((point) => point.map((value) => Math.round(1000 * value) / 1000));
}

// A matrix as Python sends it.
const matrix = (sent) => ({ numbers: numbersOf(sent), columns: sent.shape.at(-1) });

// A colour, `#rrggbb`, as one number of a pixel.
function packed(colour, alpha) {
  const [red, green, blue] = [1, 3, 5].map((from) => parseInt(colour.slice(from, from + 2), 16));
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
