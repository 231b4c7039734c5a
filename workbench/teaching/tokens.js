// You against the line: a click puts a token on a class of a photograph or takes it away; once all are placed, one threshold
// places as many. The score is the probability that a set contains its label, on average.

function tokens(root, { about, photographs, tokens: all, threshold, name, title }, data) {
  if (!data.only) for (const paragraph of about) rich(root, "p", "wb-about", paragraph);
  const placed = new Set(); // the classes, each an object of its own
  const total = photographs.length;
  const score = (isIn) => photographs.flatMap(({ classes }) => classes).filter(isIn).reduce((sum, { probability }) => sum + probability, 0) / total;
  const written = (share) => `${(100 * share).toFixed(1)} %`;
  const bar = add(root, "div", "wb-token-bar");
  const said = add(bar, "p", "wb-left");
  said.setAttribute("role", "status");
  const line = add(bar, "button", "wb-button", "One threshold");
  const again = add(bar, "button", "", "Again");
  const wall = add(root, "div", "wb-tokens");
  wall.style.setProperty("--threshold", threshold);
  const bars = photographs.flatMap(({ image, shows, classes }, at) => {
    const card = add(wall, "section", "wb-token-photo");
    card.setAttribute("aria-label", `Photograph ${at + 1}: ${shows}`);
    Object.assign(add(card, "img"), { src: image, alt: `Photograph of ${shows}` });
    const list = add(card, "div", "wb-token-classes");
    return classes.map((each) => {
      const button = add(list, "button", "wb-token");
      add(button, "span", "wb-token-name", each.name);
      add(add(button, "span", "wb-token-track"), "span", "wb-token-share").style.setProperty("--share", each.probability);
      button.addEventListener("click", () => {
        if (!placed.delete(each) && placed.size < all) placed.add(each);
        update();
      });
      return { each, button };
    });
  });
  let drawn = false; // whether the line is

  function update() {
    for (const { each, button } of bars) {
      button.setAttribute("aria-pressed", placed.has(each));
      button.classList.toggle("wb-above", drawn && each.probability >= threshold);
      button.disabled = drawn || (placed.size === all && !placed.has(each));
    }
    wall.classList.toggle("wb-line", drawn);
    line.disabled = drawn || placed.size < all;
    again.disabled = placed.size === 0;
    said.textContent = drawn ? verdict() : placed.size < all ? `${all - placed.size} of ${all} tokens left` : `All ${all} tokens are placed.`;
    root.dataset.placed = placed.size;
  }

  function verdict() {
    const [yours, best] = [score((each) => placed.has(each)), score((each) => each.probability >= threshold)];
    const end = yours > best - 1e-9 ? "You placed them as the line does: no one can do better." : "No other way to place them reaches more.";
    return `You: ${written(yours)} contain the label. The line: ${written(best)}. ${end}`;
  }

  line.addEventListener("click", () => {
    drawn = true;
    update();
  });
  again.addEventListener("click", () => {
    placed.clear();
    drawn = false;
    update();
  });
  data.embed?.(root, name, title);
  update();
  return { reveal: () => {}, stop: () => {} };
}
