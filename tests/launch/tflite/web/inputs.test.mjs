// The drawing area and the lists of categories, with as much of a page as they need.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Board } from "../../../../launch/tflite/web/board.js";
import { Sliders } from "../../../../launch/tflite/web/sliders.js";

class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], listeners: {}, classList: { add() {} } });
  }
  addEventListener(name, listener) {
    this.listeners[name] = listener;
  }
  append(...children) {
    this.children.push(...children);
  }
  replaceChildren(...children) {
    this.children = children;
  }
  setAttribute(name, value) {
    this[name] = value;
  }
  find(tag) {
    return this.children.flatMap((child) => (child.find ? [...(child.tag === tag ? [child] : []), ...child.find(tag)] : []));
  }
}

function setUpPage() {
  globalThis.document = { createElement: (tag) => new Element(tag), activeElement: null };
  globalThis.Option = class extends Element {
    constructor(text, value) {
      super("option");
      Object.assign(this, { text, value: String(value) });
    }
  };
  globalThis.getComputedStyle = () => ({ getPropertyValue: () => "rgb(0 0 0)" });
}

function makeCanvas() {
  const context = new Proxy({}, { get: () => () => {}, set: () => true });
  return Object.assign(new Element("canvas"), {
    width: 100, height: 100, getContext: () => context, setPointerCapture() {},
    getBoundingClientRect: () => ({ left: 0, top: 0, width: 100, height: 100 }),
  });
}

function makeBoard() {
  setUpPage();
  const picture = { channels: 1, width: 2, height: 2, low: 0, high: 1, paper: 0, ink: [1], framing: "plain" };
  const [canvas, changes] = [makeCanvas(), []];
  const board = new Board(canvas, makeCanvas(), picture, () => changes.push(1));
  const send = (name, pointerId, x, y) => canvas.listeners[name]({ pointerId, button: 0, clientX: x, clientY: y });
  return { board, canvas, send };
}

test("a second finger neither ends the stroke of the first nor draws", () => {
  const { board, send } = makeBoard();
  send("pointerdown", 1, 10, 10);
  send("pointermove", 1, 20, 10);
  send("pointerdown", 2, 90, 90);
  send("pointermove", 2, 80, 90);
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) send(name, 2, 80, 90);
  send("pointermove", 1, 30, 10);
  assert.deepEqual(board.strokes, [[[0.1, 0.1], [0.2, 0.1], [0.3, 0.1]]]);
  send("pointerup", 1, 30, 10);
  send("pointermove", 1, 40, 10);
  send("pointerdown", 2, 50, 50);
  assert.deepEqual(board.strokes.map((stroke) => stroke.length), [3, 1]);
});

test("clearing ends a stroke that is being drawn, and a key does not take it over", () => {
  const { board, canvas, send } = makeBoard();
  send("pointerdown", 1, 10, 10);
  canvas.listeners.keydown({ key: " ", preventDefault() {} });
  send("pointermove", 1, 20, 10);
  assert.deepEqual(board.strokes, [[[0.1, 0.1], [0.2, 0.1]]]);
  board.clear();
  send("pointermove", 1, 30, 10);
  assert.deepEqual(board.strokes, []);
  send("pointerdown", 2, 50, 50);
  assert.deepEqual(board.strokes, [[[0.5, 0.5]]]);
});

test("a category has one list in place of its sliders, which examples set", () => {
  setUpPage();
  const range = { unit: "", lowest: 0, highest: 1, is_whole: true };
  const features = ["age", "colour=red", "colour=blue"].map((name) => ({ name, ...range }));
  const group = { name: "colour", features: [1, 2], values: ["red", "blue"], is_index: false, has_none: false };
  const [place, moved] = [new Element("div"), []];
  const sliders = new Sliders(place, features, (i) => moved.push(i), [group]);
  assert.equal(place.children.length, 2);
  assert.equal(place.find("input").length, 2); // a slider and a number of age alone
  const [select] = place.find("select");
  assert.deepEqual(select.children.map(({ text }) => text), ["red", "blue"]);
  sliders.show([30, 0, 1]);
  assert.equal(select.value, "1");
  select.value = "0";
  select.listeners.change();
  assert.deepEqual([...sliders.read()], [30, 1, 0]);
  assert.deepEqual(moved, [undefined, 1]);
  sliders.show([30, 1, 1]); // no choice of a person
  assert.equal(select.selectedIndex, -1);
  assert.deepEqual([...sliders.read()], [30, 1, 1]);
});
