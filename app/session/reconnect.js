// A page that has lost its server says so; when one answers again, the page is read anew as its address says. Streamlit
// itself connects again and leaves the page as it is, but the new session knows nothing of it: no control would work.
{
  const said = document.createElement("div");
  said.id = "wb-gone";
  said.setAttribute("role", "status");
  said.textContent =
    "The workbench does not answer. If it was stopped, start it again (workbench app): this page goes on by itself.";
  new MutationObserver(([{ target, oldValue }]) => {
    if (target.dataset.testConnectionState === "CONNECTED") {
      if (said.isConnected) location.reload();
    } else if (oldValue === "CONNECTED") {
      document.body.append(said);
    }
  }).observe(document, { attributeFilter: ["data-test-connection-state"], attributeOldValue: true, subtree: true });
}
