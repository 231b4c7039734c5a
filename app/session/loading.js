// The style of a page that loads goes at the first touch, or after ten seconds: nothing stays hidden behind a part that fails.
{
  const touches = ["pointerdown", "keydown", "wheel"];
  const touched = () => {
    document.querySelector("#wb-loading")?.remove();
    for (const touch of touches) removeEventListener(touch, touched, true);
  };
  for (const touch of touches) addEventListener(touch, touched, true);
  setTimeout(touched, 10_000);
}
