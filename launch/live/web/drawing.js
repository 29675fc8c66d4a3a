// A way to bring examples: pictures that a person draws. The page asks for a class at a time, such as "Draw a 3", so
// that each drawing has its label.

import { Board } from "./board.js";
import { Collection } from "./collection.js";
import { label, make } from "./elements.js";

const LEAST = 10; // drawings
const IN_TURN = "in turn";
const HELP =
  "Draw with a finger, a mouse, or the keyboard: arrow keys move the pen, Space lowers and lifts it, Delete clears, " +
  "Enter keeps.";

class Drawing {
  constructor(description) {
    this.collection = new Collection(description, LEAST, () => this.showAsked());
    this.classes = description.classes;
    this.board = null;
    this.build(description.image);
  }

  // Whoever looks at another way meanwhile finds the drawings as they were.
  show(place, image, onChange) {
    place.append(this.element);
    if (!this.board) this.makeBoard(image);
    this.board.draw();
    this.collection.tell(onChange);
  }

  // Its colours are those of the page that it is in by now.
  makeBoard(image) {
    this.board = new Board(this.canvas, this.seen, image, () => this.enable());
    if (image.channels > 1) this.readInk(image);
    this.board.clear();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      if (this.canvas.isConnected) this.board.draw();
    });
  }

  build(image) {
    this.asked = make("p", { className: "asked", role: "status" });
    this.canvas = make("canvas", {
      ...{ className: "drawing-area", width: 448, height: 448, tabIndex: 0, role: "application" },
      "aria-label": "Drawing area",
    });
    this.seen = make("canvas", {
      className: "seen",
      width: 224,
      height: 224,
      role: "img",
      "aria-label": "The picture that the model sees",
    });
    const tools = make(
      "div",
      { className: "tools" },
      make("figure", {}, make("figcaption", {}, "What the model sees"), this.seen),
    );
    if (image.channels > 1) {
      this.ink = make("input", { type: "color", value: "#ff2020" });
      this.ink.addEventListener("input", () => this.readInk(image));
      tools.append(...label("Ink", this.ink));
    }
    const [keep, undo, clear] = ["Keep", "Undo", "Clear"].map((text) => make("button", { type: "button" }, text));
    keep.className = "main";
    Object.assign(this, { keepButton: keep, undoButton: undo, clearButton: clear });
    keep.addEventListener("click", () => this.keep());
    undo.addEventListener("click", () => this.undo());
    clear.addEventListener("click", () => this.board.clear());
    // Else a quick stroke counts as a throw of the page, and Chromium takes the tap on Keep after it for its end.
    this.canvas.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.keep();
    });
    this.choice = make(
      "select",
      {},
      new Option("the one you have fewest of", IN_TURN),
      ...this.classes.map((name, i) => new Option(name, i)),
    );
    this.choice.addEventListener("change", () => this.showAsked());
    this.element = make(
      "div",
      {},
      this.asked,
      make("div", { className: "boards" }, this.canvas, tools),
      make("div", { className: "buttons" }, keep, undo, clear),
      make("p", { className: "note" }, HELP),
      make("p", {}, ...label("Ask for", this.choice)),
      this.collection.element,
    );
  }

  // The chosen colour as stored values of the three channels.
  readInk({ low, high }) {
    const parts = [1, 3, 5].map((start) => parseInt(this.ink.value.slice(start, start + 2), 16));
    this.board.ink = parts.map((part) => low + ((high - low) * part) / 255);
    this.board.change();
  }

  get label() {
    if (this.choice.value !== IN_TURN) return Number(this.choice.value);
    const counts = this.classes.map((_, place) => this.collection.count(place));
    return counts.indexOf(Math.min(...counts));
  }

  keep() {
    const stored = this.board.read();
    if (!stored) return;
    const strokes = this.board.strokes;
    this.collection.add([{ stored, label: this.label }], () => {
      this.board.strokes = strokes;
      this.board.change();
    });
    this.board.clear();
  }

  // The last stroke; with none on the board, the last drawing that was kept or deleted.
  undo() {
    if (this.board.strokes.length) {
      this.board.strokes.pop();
      this.board.change();
    } else {
      this.collection.undo();
    }
  }

  showAsked() {
    const name = this.classes[this.label];
    const text = ["Draw ", startsWithVowel(name) ? "an " : "a ", make("strong", {}, name)];
    if (this.asked.textContent !== text.map((part) => part.textContent ?? part).join(""))
      this.asked.replaceChildren(...text);
    this.enable();
  }

  enable() {
    const isDrawn = this.board?.strokes.length > 0;
    this.keepButton.disabled = this.clearButton.disabled = !isDrawn;
    this.undoButton.disabled = !isDrawn && !this.collection.history.length;
  }
}

// As it is spoken: an 8, an apple.
function startsWithVowel(name) {
  return /^(8|11$|18$|[aeio])/i.test(name);
}

let drawing = null;

export const DRAWING = {
  title: "Draw them",
  fits: ({ kind, image }) => kind === "arrays" && Boolean(image),
  show(place, description, onChange) {
    drawing ??= new Drawing(description);
    drawing.show(place, description.image, onChange);
  },
  read: async (key) => drawing.collection.read(key),
};
