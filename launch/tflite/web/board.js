// The drawing area: finger, mouse or keyboard make strokes, and the picture that the model sees is shown beside it.

import { drawPicture } from "./strokes.js";

const STEP = 1 / 32; // of the drawing area, for an arrow key
const ARROWS = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

export class Board {
  // `onChange` is called whenever there is another picture.
  constructor(canvas, seen, picture, onChange) {
    Object.assign(this, { canvas, seen, picture, onChange });
    this.strokes = [];
    this.base = null; // an example under the strokes
    this.ink = picture.ink;
    this.pen = { at: [0.5, 0.5], isDown: false, isUsed: false };
    this.pointer = null; // the id of the finger or mouse that draws
    this.listen();
  }

  // The stored values of what is shown, or null for an empty board.
  read() {
    if (!this.base && !this.strokes.length) return null;
    return drawPicture(this.strokes, this.picture, this.base, this.ink);
  }

  clear() {
    this.show(null);
  }

  // Shows an example, without strokes; one that is being drawn ends.
  show(example) {
    this.base = example;
    this.strokes = [];
    this.pointer = null;
    this.pen.isDown = false;
    this.change();
  }

  // Grey pictures are drawn on paper; in colour ones, strokes go over the example.
  begin(point) {
    if (this.picture.channels === 1) this.base = null;
    this.strokes.push([point]);
    this.change();
  }

  extend(point) {
    this.strokes[this.strokes.length - 1].push(point);
    this.change();
  }

  change() {
    this.draw();
    this.onChange();
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (this.pointer !== null || event.button > 0) return;
      this.pointer = event.pointerId;
      canvas.setPointerCapture(event.pointerId);
      this.pen.isDown = this.pen.isUsed = false;
      this.begin(this.locate(event));
    });
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerId === this.pointer) this.extend(this.locate(event));
    });
    // A second finger, or the palm, may come and go meanwhile; the stroke is that of the first.
    for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
      canvas.addEventListener(name, (event) => {
        if (event.pointerId === this.pointer) this.pointer = null;
      });
    }
    canvas.addEventListener("keydown", (event) => this.press(event));
    canvas.addEventListener("blur", () => this.liftPen());
  }

  locate(event) {
    const { left, top, width, height } = this.canvas.getBoundingClientRect();
    const keep = (value) => Math.min(1, Math.max(0, value));
    return [keep((event.clientX - left) / width), keep((event.clientY - top) / height)];
  }

  press(event) {
    const { pen } = this;
    if (this.pointer !== null) return; // a finger draws: its stroke would go on from the pen
    if (event.key in ARROWS) {
      const [right, down] = ARROWS[event.key];
      pen.at = [Math.min(1, Math.max(0, pen.at[0] + right)), Math.min(1, Math.max(0, pen.at[1] + down))];
      if (pen.isDown) this.extend(pen.at);
    } else if (event.key === " ") {
      pen.isDown = !pen.isDown;
      if (pen.isDown) this.begin(pen.at);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.clear();
    } else {
      return;
    }
    pen.isUsed = true;
    event.preventDefault();
    this.draw();
  }

  liftPen() {
    this.pen.isDown = this.pen.isUsed = false;
    this.draw();
  }

  draw() {
    const { canvas, base, picture } = this;
    const context = canvas.getContext("2d");
    const { paper, ink } = findColors(picture);
    const isWhite = picture.channels === 1 && picture.paper > picture.ink[0];
    context.fillStyle = isWhite ? ink : paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (base) paintValues(canvas, base, picture, paper, ink);
    context.strokeStyle = picture.channels > 1 ? toColor(this.ink) : isWhite ? paper : ink;
    context.lineWidth = canvas.width / 13;
    context.lineCap = context.lineJoin = "round";
    this.strokes.forEach((stroke) => this.drawStroke(context, stroke));
    if (this.pen.isUsed) this.drawPen(context);
    const values = this.read() || new Float32Array(picture.height * picture.width * picture.channels).fill(picture.paper);
    paintValues(this.seen, values, picture, paper, ink);
  }

  drawStroke(context, stroke) {
    const { width, height } = this.canvas;
    context.beginPath();
    context.moveTo(stroke[0][0] * width, stroke[0][1] * height);
    (stroke.length > 1 ? stroke.slice(1) : stroke).forEach(([x, y]) => context.lineTo(x * width, y * height));
    context.stroke();
  }

  drawPen(context) {
    const { width, height } = this.canvas;
    context.save();
    context.lineWidth = 4;
    context.strokeStyle = getComputedStyle(this.canvas).getPropertyValue("--accent");
    context.beginPath();
    context.arc(this.pen.at[0] * width, this.pen.at[1] * height, this.pen.isDown ? 10 : 18, 0, 2 * Math.PI);
    context.stroke();
    context.restore();
  }
}

// The colours of the lowest value, and of the highest. Digits are ink on paper, in the page's own colours; any other
// picture has its own.
export function findColors({ framing }) {
  if (framing === "plain") return { paper: "rgb(0 0 0)", ink: "rgb(255 255 255)" };
  const style = getComputedStyle(document.documentElement);
  return { paper: style.getPropertyValue("--paper"), ink: style.getPropertyValue("--ink") };
}

// Stored values onto a whole canvas, a block for each pixel.
export function paintValues(canvas, values, picture, paper, ink) {
  const { height, width, channels, low, high } = picture;
  const context = canvas.getContext("2d");
  const [blockWidth, blockHeight] = [canvas.width / width, canvas.height / height];
  const share = (value) => Math.min(1, Math.max(0, (value - low) / (high - low)));
  for (let i = 0; i < height * width; i++) {
    const [x, y] = [(i % width) * blockWidth, Math.floor(i / width) * blockHeight];
    const own = Array.from({ length: channels }, (_, channel) => share(values[i * channels + channel]));
    context.fillStyle = channels === 1 ? mixColors(paper, ink, own[0]) : toColor(own.map((part) => 255 * part));
    context.fillRect(Math.floor(x), Math.floor(y), Math.ceil(blockWidth + 0.5), Math.ceil(blockHeight + 0.5));
  }
}

function toColor(parts) {
  return `rgb(${parts.map((part) => Math.round(part)).join(" ")})`;
}

// Both colours as "rgb(r g b)".
function mixColors(first, second, share) {
  const [from, to] = [first, second].map((color) => color.match(/[\d.]+/g).map(Number));
  return toColor(from.map((part, i) => part + (to[i] - part) * share));
}
