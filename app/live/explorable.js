// One row to look at: its photograph, its classes as bars with those of the set lit, and below it all rows by set size.
function explorable(root, data, channel) {
  root.style.setProperty("--hit", data.colours.hit);
  root.style.setProperty("--miss", data.colours.miss);
  root.setAttribute("role", "figure");
  root.setAttribute("aria-label", "One row, its classes, and those that are in its set");
  const stage = add(root, "div", "wb-stage");
  const left = add(stage, "div", "wb-stage-photo");
  const right = add(stage, "div", "wb-stage-classes");
  const verdict = add(right, "p", "wb-stage-verdict");
  const bars = add(right, "ol", "wb-bars");
  add(root, "p", "wb-subtitle wb-invitation", data.invitation);
  const strip = add(root, "div", "wb-strip");
  strip.setAttribute("role", "group");
  strip.setAttribute("aria-label", "Rows, the smallest set first");
  let [shown, place] = [0, null];

  const buttons = data.cards.map((card, position) => {
    const button = add(strip, "button", "wb-thumb");
    Object.assign(button, { type: "button" });
    if (data.sheet) photoFrom(data.sheet, position, data.columns, data.lines, card.photo, button);
    if (card.text) button.title = card.text;
    const size = add(button, "span", "wb-thumb-size");
    button.addEventListener("click", () => choose(position));
    return { button, size };
  });

  function choose(position) {
    shown = position;
    const card = data.cards[position];
    left.replaceChildren();
    if (data.sheet) photoFrom(data.sheet, position, data.columns, data.lines, card.photo, left);
    if (card.text) add(left, "p", "wb-row-text wb-whole", card.text);
    add(left, "p", "wb-truth", card.truth);
    bars.replaceChildren(
      ...card.classes.map(({ name, glyph, text, probability, right: correct, rank }) => {
        const line = document.createElement("li");
        line.rank = rank;
        if (correct) line.className = "wb-right";
        classTitle(line, "span", name, glyph);
        const bar = add(line, "span", "wb-bar-track");
        add(bar, "span", "wb-bar-fill").style.width = `${100 * Math.min(1, probability)}%`;
        add(line, "span", "wb-probability", text);
        return line;
      }),
    );
    if (place !== null) draw(place);
  }

  function draw(at) {
    place = at;
    const { sizes, hits } = data.cards[shown];
    const size = sizes[at];
    for (const line of bars.children) line.classList.toggle("wb-lit", line.rank < size);
    const correct = hits === null ? "" : hits[at] ? "correct" : "missed";
    right.dataset.verdict = correct === "correct" ? "hit" : correct && "miss";
    const more = size - [...bars.children].filter(({ rank }) => rank < size).length;
    verdict.textContent = `${size === 0 ? "No class is" : size === 1 ? "1 class is" : `${size} classes are`} in the set`
      + `${more > 0 ? `, ${more} of them below these` : ""}${correct && ` · ${SIGNS[right.dataset.verdict]}${correct}`}`;
    const order = data.cards.map((card, position) => [card.sizes[at], position]).sort(([a, i], [b, j]) => a - b || i - j);
    order.forEach(([n, position], index) => {
      const { button, size: text } = buttons[position];
      button.style.order = index;
      text.textContent = n;
      button.setAttribute("aria-label", `row ${data.cards[position].number}: ${n} ${n === 1 ? "class" : "classes"}`);
      button.setAttribute("aria-pressed", position === shown);
      button.dataset.verdict = data.cards[position].hits === null ? "" : data.cards[position].hits[at] ? "hit" : "miss";
    });
    root.dataset.place = at;
  }

  choose(data.cards.length >> 1);
  return { draw };
}
