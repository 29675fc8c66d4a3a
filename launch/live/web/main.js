// The page of a participant: asks, shows what happens, and thanks. All else is in the worker.

import { Board } from "./board.js";
import { showAnswer } from "./answer.js";
import { preprocess } from "./maths.js";
import { describeAsked, describeLeaving, describeStaying, isOpenNetwork, nameBrowser } from "./consent.js";
import { Progress } from "./progress.js";
import { keepAwake } from "./waking.js";
import { WAYS } from "./ways.js";

const page = Object.fromEntries(Array.from(document.querySelectorAll("[id]"), (element) => [element.id, element]));
const SECTIONS = ["asking", "working", "paused", "over"];
const state = { about: null, key: "", description: null, way: null, examples: null, runs: false };
const progress = new Progress(page);
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const asked = new Map();
let numAsked = 0;

// What the worker answers to a question; it throws a line for people.
function ask(what, given = {}) {
  return new Promise((resolve, reject) => {
    asked.set(++numAsked, { resolve, reject });
    worker.postMessage({ id: numAsked, ask: what, ...given });
  });
}

worker.onmessage = ({ data: { id, result, failed, tell, details } }) => {
  if (tell) {
    hear(tell, details);
    return;
  }
  const { resolve, reject } = asked.get(id);
  asked.delete(id);
  if (failed === undefined) resolve(result);
  else reject(new Error(failed));
};
worker.onerror = (event) => {
  event.preventDefault();
  pause(
    `This browser cannot run the page: ${event.message || "its scripts did not load"}. ` +
      "Take a newer one, or load the page again.",
  );
};

function say(text) {
  page.status.textContent = text;
}

// Shows one section, and puts the focus where it begins, so that a keyboard or a reader goes on from there.
function show(name) {
  for (const each of SECTIONS) page[each].hidden = each !== name;
  document.documentElement.dataset.shown = name;
  page[`${name}-title`].focus({ preventScroll: true });
  scrollTo(0, 0);
}

function pause(why) {
  state.runs = false;
  keepAwake(false);
  say("");
  page.why.textContent = why;
  show("paused");
}

async function start() {
  const response = await fetch("/page/about.json").catch(() => null);
  if (!response?.ok) {
    pause("No live run answers here. Ask the organiser for the link, and load this page again.");
    return;
  }
  const about = (state.about = await response.json());
  page.title.textContent = about.name;
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const token = location.hash.slice(1) || null;
  const opened = await ask("open", { url: `${scheme}://${location.host}/ws`, token, version: about.runtime });
  state.key = opened.key;
  state.isKept = opened.isKept;
  if (!about.deals) state.description = await ask("describe");
  if (opened.agreed && (about.deals || opened.agreed.own)) {
    await takePart(opened.agreed);
    return;
  }
  await showAsking();
}

async function showAsking() {
  const { about } = state;
  fill(page.asked, describeAsked(about, state.isKept));
  fill(page.leaves, describeLeaving(about));
  fill(page.stays, describeStaying(about));
  page["open-network"].hidden = !isOpenNetwork(location);
  page.name.value ||= nameBrowser(navigator.userAgent);
  if (!about.deals) await showWays();
  say("");
  show("asking");
}

function fill(list, lines) {
  list.replaceChildren(...lines.map((line) => Object.assign(document.createElement("li"), { textContent: line })));
}

// The ways to bring examples that fit the run.
async function showWays() {
  const { description } = state;
  const fitting = WAYS.filter((way) => way.fits(description));
  if (!fitting.length) throw new Error("this page has no way to bring the examples that this run wants; take join.py");
  page.own.hidden = false;
  page["way-choice"].hidden = fitting.length < 2;
  page.way.replaceChildren(...fitting.map(({ title }, i) => new Option(title, i)));
  const choose = () => {
    state.way = fitting[page.way.value];
    page.agree.disabled = true;
    page["way-place"].replaceChildren();
    state.way.show(page["way-place"], description, ({ numTrain, problem }) => {
      page.agree.disabled = Boolean(problem) || !numTrain;
      page["own-problem"].textContent = problem || (numTrain ? `${numTrain} examples to train on.` : "");
    });
  };
  page.way.onchange = choose;
  choose();
}

async function agree() {
  page.agree.disabled = true;
  try {
    const agreed = {
      at: new Date().toISOString(),
      name: page.name.value.trim() || nameBrowser(navigator.userAgent),
      own: null,
    };
    if (state.way) {
      const own = { examples: await state.way.read(state.key), columns: state.about.columns };
      await ask("agree", { agreed: page.keep.checked ? { ...agreed, own } : null });
      await takePart({ ...agreed, own });
    } else {
      await ask("agree", { agreed });
      await takePart(agreed);
    }
  } catch (error) {
    (state.way ? page["own-problem"] : page.status).textContent = error.message;
  } finally {
    page.agree.disabled = false;
  }
}

// Until the run is over, or the person stops.
async function takePart(agreed) {
  state.agreed = agreed;
  state.runs = true;
  progress.begin(state.about);
  say("Connecting…");
  show("working");
  keepAwake(true, (isAwake) => progress.showCare(isAwake));
  try {
    const ending = await ask("run", { name: agreed.name, own: agreed.own });
    if (ending === "stopped") {
      pause("You have stopped. The run goes on without this device, and keeps its seat: you can come back.");
    } else {
      await showEnd();
    }
  } catch (error) {
    pause(`It cannot go on here: ${error.message}.`);
  }
}

// What the client tells of.
function hear(what, details) {
  if (what === "connected") say("Connected. The run begins when enough devices are here.");
  else if (what === "lost") say("The connection is lost; the page tries again by itself.");
  else if (what === "welcome") say(`Joined as client ${details.client}.`);
  if (what === "done") state.end = details.text;
  progress.hear(what, details);
}

async function showEnd() {
  state.runs = false;
  keepAwake(false);
  const { rounds, sentBytes } = progress.summarize();
  const done = `Since it was last loaded, this page trained in ${rounds} and sent ${sentBytes}.`;
  page.summary.textContent = `${sentence(state.end)} ${done}`;
  say("The run is over.");
  show("over");
  const sums = await ask("measure");
  if (sums?.num) {
    const model = sums.isTuned ? "The model that was tuned here" : "The last model that came here";
    const found = `${model} is right on ${sums.correct} of ${sums.num} examples`;
    page.tested.textContent = `${found} of this device that it was not trained on.`;
  }
  const image = state.about.image ?? state.description?.image;
  if (sums && image?.channels === 1) showTrial(image);
}

function sentence(text) {
  const whole = text ? text[0].toUpperCase() + text.slice(1) : "The run is over";
  return whole.endsWith(".") ? whole : `${whole}.`;
}

// A drawing to the model that the device has.
function showTrial(image) {
  page.trial.hidden = false;
  const { scale, offset } = state.about;
  const labels = progress.classNames;
  let newest = 0;
  const board = new Board(page.board, page.seen, image, async () => {
    const turn = ++newest;
    const stored = board.read();
    const logits = stored && (await ask("infer", { x: preprocess(stored, scale, offset) }));
    if (turn !== newest) return;
    showAnswer(page, logits ? [{ file: { format: "this model" }, logits, times: [] }] : [], {
      answers: "classes",
      labels,
    });
  });
  page.clear.addEventListener("click", () => board.clear());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => board.draw());
  board.clear();
}

async function forget() {
  await ask("forget");
  page.forgotten.textContent = "Forgotten.";
  page.why.textContent = "All of this run is forgotten in this browser.";
}

page.agree.addEventListener("click", agree);
page.stop.addEventListener("click", () => ask("stop"));
page.back.addEventListener("click", () => {
  if (state.agreed)
    ask("agree", { agreed: { ...state.agreed, own: page.keep.checked ? state.agreed.own : null } }).then(() =>
      takePart(state.agreed),
    );
  else location.reload();
});
page.forget.addEventListener("click", async () => {
  await forget();
  state.agreed = null;
});
page["forget-all"].addEventListener("click", forget);
addEventListener("hashchange", () => location.reload());
document.addEventListener("visibilitychange", () => {
  if (!state.runs) return;
  if (document.hidden) page["hidden-note"].hidden = false;
  else ask("wake");
});
start().catch((error) => pause(`It cannot go on here: ${error.message}.`));
