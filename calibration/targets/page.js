// The page: a menu, and the board or the dots over the whole screen.

const TURNED_NOTICE_MS = 4000;
const THREE_FINGER_TAP_MS = 1000;

const element = (id) => document.getElementById(id);
const inWords = ([width, height]) => `${width} × ${height}\u00a0px`;

class Page {
  constructor() {
    this.canvas = element("canvas");
    this.context = this.canvas.getContext("2d", {alpha: false});
    this.touches = new Touches();
    this.rig = new Rig(this);
    this.wanted = "menu";
    this.showing = "menu";
    this.size = [0, 0];
    this.turn = currentTurn();
    this.turns = 0;
    this.turnedUntilMs = 0;
    this.orderedTurn = null;
    this.wasFullScreen = false;
    this.wakeLock = null;
    this.threeFingersAtMs = null;
  }

  async start() {
    this.boards = await loadBoards();
    this.listen();
    watchSize(this.canvas, (size) => {
      this.size = size;
      this.checkTurn();
      this.update();
    });
    element("menu-home").hidden = Boolean(document.documentElement.requestFullscreen) || this.isStandalone();
    element("menu-wake").textContent = navigator.wakeLock ? "" : "This page cannot do that for you here.";
    element("menu-rig").textContent = this.rig.served ? "" : "Opened as a file: the rig sees this page by its camera only.";
    const asked = location.hash.slice(1);
    if (asked === "charuco" || asked === "dots") this.show(asked);
    this.rig.start();
  }

  listen() {
    element("show-charuco").addEventListener("click", () => this.startFullScreen("charuco"));
    element("show-dots").addEventListener("click", () => this.startFullScreen("dots"));
    this.canvas.addEventListener("pointerdown", (event) => this.fingerDown(event));
    for (const end of ["pointerup", "pointercancel"]) {
      window.addEventListener(end, (event) => this.touches.lift(event.pointerId));
    }
    for (const unwanted of ["contextmenu", "selectstart", "dblclick", "gesturestart", "dragstart"]) {
      document.addEventListener(unwanted, (event) => event.preventDefault());
    }
    // Browsers that do not heed touch-action scroll, zoom and magnify on these.
    for (const covering of [this.canvas, element("notice")]) {
      for (const unwanted of ["touchstart", "touchmove"]) {
        covering.addEventListener(unwanted, (event) => event.preventDefault(), {passive: false});
      }
    }
    document.addEventListener("touchstart", (event) => this.countFingers(event.touches.length));
    for (const end of ["touchend", "touchcancel"]) {
      document.addEventListener(end, (event) => event.touches.length === 0 && this.allFingersUp());
    }
    document.addEventListener("fullscreenchange", () => this.fullScreenChanged());
    document.addEventListener("visibilitychange", () => this.visibilityChanged());
    window.addEventListener("orientationchange", () => this.turnChanged());
    if (screen.orientation) screen.orientation.addEventListener("change", () => this.turnChanged());
    if (window.visualViewport) window.visualViewport.addEventListener("resize", () => this.update());
  }

  isStandalone() {
    return Boolean(navigator.standalone) || matchMedia("(display-mode: standalone), (display-mode: fullscreen)").matches;
  }

  // What is wanted on the screen.

  async startFullScreen(target) {
    try {
      await document.documentElement.requestFullscreen({navigationUI: "hide"});
    } catch {
      // No full screen here: the size that comes of it is judged below.
    }
    this.show(target);
  }

  show(target) {
    this.wanted = target;
    this.turnedUntilMs = 0;
    this.touches.clear();
    this.keepAwake();
    this.update();
  }

  toMenu(message) {
    this.wanted = "menu";
    this.orderedTurn = null;
    element("menu-message").textContent = message;
    element("menu-message").hidden = !message;
    this.update();
  }

  async obey(order) {
    const started = this.wanted !== "menu" || document.fullscreenElement;
    if (!started && !this.sizeIsRight()) {
      const target = order.show === "charuco" ? "board" : "dots";
      this.toMenu(`The rig asks for the ${target}. Press “Show the ${target}”.`);
      return;
    }
    this.orderedTurn = order.turn;
    try {
      await screen.orientation.lock(LOCK_OF_TURN[order.turn]);
    } catch {
      // A browser that cannot turn the page by itself: the person is asked to turn the phone.
    }
    this.show(order.show);
  }

  rigReached(reached) {
    element("menu-rig").textContent = reached ? "Connected to the rig." : "The rig does not answer; trying again.";
  }

  // What has happened to the screen.

  turnChanged() {
    this.checkTurn();
    this.update();
  }

  checkTurn() {
    const turn = currentTurn();
    if (turn === this.turn) return;
    this.turn = turn;
    this.turns += 1;
    if (this.wanted !== "menu" && turn !== this.orderedTurn) {
      this.turnedUntilMs = performance.now() + TURNED_NOTICE_MS;
      setTimeout(() => this.update(), TURNED_NOTICE_MS);
    }
  }

  fullScreenChanged() {
    const left = this.wasFullScreen && !document.fullscreenElement;
    this.wasFullScreen = Boolean(document.fullscreenElement);
    if (left && this.wanted !== "menu") this.toMenu("Full screen was left.");
  }

  visibilityChanged() {
    if (!document.hidden) this.keepAwake();
    this.update();
  }

  async keepAwake() {
    if (!navigator.wakeLock || this.wanted === "menu") return;
    try {
      this.wakeLock = await navigator.wakeLock.request("screen");
    } catch {
      // Battery saving forbids it; the menu asks for a long display time as well.
    }
  }

  // Fingers.

  fingerDown(event) {
    event.preventDefault();
    if (this.showing !== "dots") return;
    const box = this.canvas.getBoundingClientRect();
    const page = [
      (event.clientX - box.left) / box.width * this.canvas.width,
      (event.clientY - box.top) / box.height * this.canvas.height,
    ];
    this.touches.add(event.pointerId, glassOfPage(page, this.turn), this.turn, performance.now());
    this.update();
  }

  // Three fingers at once lead back to the menu. The rig's one stylus cannot do that, whatever it hits.
  countFingers(fingers) {
    if (fingers === 3) this.threeFingersAtMs = performance.now();
    if (fingers > 3) this.threeFingersAtMs = null;
  }

  allFingersUp() {
    this.touches.fingers.clear();
    if (this.threeFingersAtMs === null) return;
    const tapped = performance.now() - this.threeFingersAtMs <= THREE_FINGER_TAP_MS;
    this.threeFingersAtMs = null;
    if (tapped && this.wanted !== "menu") this.toMenu("");
  }

  // What is really on the screen.

  sizeIsRight() {
    const [width, height] = wantedSize();
    const zoom = window.visualViewport ? window.visualViewport.scale : 1;
    return this.size[0] === width && this.size[1] === height && Math.abs(zoom - 1) <= 0.001;
  }

  judge() {
    if (this.wanted === "menu") return "menu";
    if (document.hidden) return "hidden";
    if (!this.sizeIsRight()) return "wrong_size";
    if (this.turn === null) return "wrong_turn";
    if (this.orderedTurn !== null && this.turn !== this.orderedTurn) return "wrong_turn";
    return performance.now() < this.turnedUntilMs ? "turned" : this.wanted;
  }

  update() {
    this.showing = this.judge();
    element("menu").hidden = this.showing !== "menu";
    element("notice").hidden = !["wrong_size", "wrong_turn", "turned"].includes(this.showing);
    element("menu-size").textContent = `This page is now ${inWords(this.size)}` +
      (this.sizeIsRight() ? ": that is right." : `; in full screen it must be ${inWords(wantedSize())}.`);
    this.describe();
    this.draw();
    if (document.hidden) {
      this.rig.changed();
    } else {
      // Reported only once the browser has brought it to the screen.
      requestAnimationFrame(() => requestAnimationFrame(() => this.rig.changed()));
    }
  }

  describe() {
    const say = (title, text, cause) => {
      element("notice-title").textContent = title;
      element("notice-text").textContent = text;
      element("notice-cause").textContent = cause;
    };
    if (this.showing === "wrong_size") {
      const wanted = wantedSize();
      say("WRONG SIZE", `It must be ${inWords(wanted)}.\nIt is ${inWords(this.size)}.`, sizeCause(this.size, wanted));
    } else if (this.showing === "wrong_turn" && this.turn === null) {
      say("TURN IT UPRIGHT", "This device does not say which way round it lies.", "Turn it so that it is higher than wide.");
    } else if (this.showing === "wrong_turn") {
      const [wanted, is] = [TOP_EDGE[this.orderedTurn], TOP_EDGE[this.turn]];
      say("TURN THE PHONE", `Its top edge must point ${wanted}.\nNow it points ${is}.`, "Switch automatic rotation on for this.");
    } else if (this.showing === "turned") {
      say("THE PAGE HAS TURNED", `The phone's top edge now points ${TOP_EDGE[this.turn]}.`,
        `Turn number ${this.turns} since the page was loaded. Switch automatic rotation off.`);
    }
  }

  draw() {
    const [width, height] = this.size;
    // Setting a canvas's size clears it, even to the same size.
    if (this.canvas.width !== width) this.canvas.width = width;
    if (this.canvas.height !== height) this.canvas.height = height;
    if (this.showing === "charuco") {
      drawBoard(this.context, isLandscape(this.turn) ? this.boards.landscape : this.boards.portrait);
    } else if (this.showing === "dots") {
      drawDots(this.context, this.turn, this.touches);
    } else {
      this.context.fillStyle = "#000";
      this.context.fillRect(0, 0, width, height);
    }
  }

  // What the rig is told.
  state() {
    return {
      showing: this.showing,
      canvasWidthPx: this.size[0],
      canvasHeightPx: this.size[1],
      dpr: devicePixelRatio,
      turn: this.turn,
      turns: this.turns,
    };
  }
}

const page = new Page();
page.start();
