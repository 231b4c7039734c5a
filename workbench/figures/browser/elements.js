// What every component needs that draws its own elements; it stands before the script of each.

function add(parent, tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.textContent = text;
  parent.append(element);
  return element;
}

// plotly.js is served with the app, never from the network, and is part of a page that is handed out. A page of the app asks
// for it in its head; if that did not work, we do.
let plotly = null;
function loadPlotly(address) {
  plotly ??= new Promise((resolve, reject) => {
    if (globalThis.Plotly) return resolve(globalThis.Plotly);
    const script = document.querySelector(`script[src="${address}"]`) ?? document.createElement("script");
    script.addEventListener("load", () => resolve(globalThis.Plotly));
    script.addEventListener("error", () => reject(new Error(`plotly.js could not be read from ${address}`)));
    if (!script.isConnected) document.head.append(Object.assign(script, { src: address }));
  });
  return plotly;
}
