// Touches, and the pictures that the camera sees.

const DOTS = settings.dots;

// Every finger that came down, in glass px, whatever it did afterwards.
class Touches {
  constructor() {
    this.all = [];
    this.count = 0;
    this.fingers = new Set();
  }

  clear() {
    this.all = [];
  }

  add(pointerId, glass, turn, atMs) {
    this.fingers.add(pointerId);
    this.count += 1;
    this.all.push({
      number: this.count,
      xPx: glass[0],
      yPx: glass[1],
      turn,
      atMs,
      fingers: this.fingers.size,
      shown: this.placeToShow(glass, atMs),
    });
  }

  // A second tap on a fresh dot would not be seen: its dot is shown aside, towards the screen's middle.
  placeToShow([x, y], atMs) {
    const [across, down] = [SCREEN.widthPx / SCREEN.widthMm, SCREEN.heightPx / SCREEN.heightMm];
    const hidden = this.all.some((old) => atMs - old.atMs <= DOTS.doubleTapMs &&
      Math.hypot((old.xPx - x) / across, (old.yPx - y) / down) < DOTS.diameterMm);
    if (!hidden) return [x, y];
    const aside = DOTS.doubleTapAsideMm * across;
    return [x < SCREEN.widthPx / 2 ? x + aside : x - aside, y];
  }

  lift(pointerId) {
    this.fingers.delete(pointerId);
  }
}

function grey(level) {
  return `rgb(${level}, ${level}, ${level})`;
}

function drawDots(context, turn, touches) {
  const {width, height} = context.canvas;
  context.fillStyle = grey(DOTS.backgroundLevel);
  context.fillRect(0, 0, width, height);
  const glassScale = [SCREEN.widthPx / SCREEN.widthMm, SCREEN.heightPx / SCREEN.heightMm];
  const [across, down] = isLandscape(turn) ? glassScale.slice().reverse() : glassScale;
  const marks = isLandscape(turn) ? DOTS.landscapeMarksMm : DOTS.portraitMarksMm;
  const places = marks.map(([x, y]) => [x * across, y * down]);
  places.push(...touches.all.map((touch) => pageOfGlass(touch.shown, turn)));
  context.fillStyle = "#000";
  for (const [x, y] of places) {
    context.beginPath();
    context.ellipse(x, y, DOTS.diameterMm / 2 * across, DOTS.diameterMm / 2 * down, 0, 0, 2 * Math.PI);
    context.fill();
  }
}

function drawBoard(context, picture) {
  context.imageSmoothingEnabled = false;
  context.drawImage(picture, 0, 0);
}

async function loadBoards() {
  const load = async (source) => {
    const picture = new Image();
    picture.src = source;
    await picture.decode();
    return picture;
  };
  return {
    portrait: await load(settings.board.portrait),
    landscape: await load(settings.board.landscape),
  };
}
