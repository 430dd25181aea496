// The screen: how large it really is, which way it is turned, and where a place of the page lies on the glass.
// Glass px are those of the upright screen; page px those of the page as it is read. Both from the top left edge.

const settings = JSON.parse(document.getElementById("settings").textContent);
const SCREEN = settings.screen;

// Angles as Android and iOS count them: 90 when the phone was turned counter-clockwise, its top edge to the left.
const TURN_OF_ANGLE = {0: "portrait", 90: "landscape_left", 180: "portrait_upside_down", 270: "landscape_right"};
const LOCK_OF_TURN = {
  portrait: "portrait-primary",
  landscape_left: "landscape-primary",
  portrait_upside_down: "portrait-secondary",
  landscape_right: "landscape-secondary",
};
const TOP_EDGE = {portrait: "up", landscape_left: "left", portrait_upside_down: "down", landscape_right: "right"};

function isLandscape(turn) {
  return turn.startsWith("landscape");
}

// The turn of the page, or null on a device that counts its angles from landscape and lies that way.
function currentTurn() {
  const wide = window.innerWidth > window.innerHeight;
  const orientation = screen.orientation;
  const angle = orientation ? orientation.angle : window.orientation || 0;
  const turn = TURN_OF_ANGLE[(angle + 360) % 360];
  if (turn && isLandscape(turn) === wide) return turn;
  if (wide || !orientation) return null;
  return orientation.type === "portrait-secondary" ? "portrait_upside_down" : "portrait";
}

// The size that the page must have, in page px.
function wantedSize() {
  const wide = window.innerWidth > window.innerHeight;
  return wide ? [SCREEN.heightPx, SCREEN.widthPx] : [SCREEN.widthPx, SCREEN.heightPx];
}

function glassOfPage([x, y], turn) {
  switch (turn) {
    case "portrait": return [x, y];
    case "landscape_left": return [SCREEN.widthPx - y, x];
    case "portrait_upside_down": return [SCREEN.widthPx - x, SCREEN.heightPx - y];
    case "landscape_right": return [y, SCREEN.heightPx - x];
  }
}

function pageOfGlass([x, y], turn) {
  switch (turn) {
    case "portrait": return [x, y];
    case "landscape_left": return [y, SCREEN.widthPx - x];
    case "portrait_upside_down": return [SCREEN.widthPx - x, SCREEN.heightPx - y];
    case "landscape_right": return [SCREEN.heightPx - y, x];
  }
}

// Calls changed([width, height]) with the canvas's true size in device px, now and whenever it changes.
function watchSize(canvas, changed) {
  new ResizeObserver(([entry]) => {
    const box = canvas.getBoundingClientRect();
    const computed = [Math.round(box.width * devicePixelRatio), Math.round(box.height * devicePixelRatio)];
    const exact = entry.devicePixelContentBoxSize;
    const told = exact ? [exact[0].inlineSize, exact[0].blockSize] : computed;
    // Safari tells nothing, but its ratio of device px to CSS px is whole: there the computed size is exact.
    // Elsewhere the two differ by rounding only, or the page is scaled in a way that the browser hides.
    const agree = told.every((px, axis) => Math.abs(px - computed[axis]) <= 2);
    changed(agree ? told : computed);
  }).observe(canvas, observableBox());
}

function observableBox() {
  const exact = "devicePixelContentBoxSize" in ResizeObserverEntry.prototype;
  return {box: exact ? "device-pixel-content-box" : "content-box"};
}

// Why a page of the size `is` does not have the size `wanted`, in words.
function sizeCause(is, wanted) {
  const zoom = window.visualViewport ? window.visualViewport.scale : 1;
  if (Math.abs(zoom - 1) > 0.001) return "The page is zoomed. Zoom out with two fingers, or load it again.";
  const [across, down] = [is[0] / wanted[0], is[1] / wanted[1]];
  if (Math.abs(across / down - 1) < 0.01) {
    return "The display runs at another resolution, or the size configured is another phone's. " +
      "Set the display's full resolution, or correct the size in the configuration.";
  }
  if (is[0] <= wanted[0] && is[1] <= wanted[1]) {
    return "Bars or the camera's cutout take the rest. Show the page in full screen and let it use the whole display.";
  }
  return "The size configured is not this screen's. Correct it in the configuration.";
}
