// A page of the static site. `sets.html#sizes` shows one picture alone; below each picture stands the line that embeds it.
const only = location.hash.slice(1);
addEventListener("hashchange", () => location.reload());

function embed(box, name, title) {
  const address = `${location.href.split("#")[0]}#${name}`;
  const details = add(box, "details", "wb-embed");
  add(details, "summary", "", "Embed this picture");
  add(details, "code", "", `<iframe src="${address}" title="${title}" width="100%" height="560"></iframe>`);
}

// `lesson_3.html?present` is for a wall: one idea a screen; after the last one comes the next lesson, Escape leaves.
const present = location.search === "?present";
document.body.classList.toggle("wb-presenting", present);
addEventListener("keydown", ({ key }) => {
  const to = { PageDown: ".turn a:last-child", PageUp: ".turn a:first-child" }[key];
  const link = present && document.querySelector(to ?? "#none");
  if (link) location.href = `${link.href}${link.matches("[href^=lesson]") ? "?present" : ""}`;
  if (present && key === "Escape") location.href = location.pathname;
});

const given = { ...data, only, present, embed: only || present ? null : embed, plotly: "assets/plotly.js" };
show({ data: given, parentElement: document.getElementById("page") });
