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
const state = { about: null, key: "", description: null, way: null, hadSeat: false, runs: false };
const progress = new Progress(page);
const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
const asked = new Map();
let numAsked = 0;

// What the worker answers to a question; it throws a line for people, with whether it is a refusal for good.
function ask(what, given = {}) {
  return new Promise((resolve, reject) => {
    asked.set(++numAsked, { resolve, reject });
    worker.postMessage({ id: numAsked, ask: what, ...given });
  });
}

worker.onmessage = ({ data: { id, result, failed, isFinal, tell, details } }) => {
  if (tell) {
    hear(tell, details);
    return;
  }
  const { resolve, reject } = asked.get(id);
  asked.delete(id);
  if (failed === undefined) resolve(result);
  else reject(Object.assign(new Error(failed), { isFinal }));
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

// `canReturn`: whether it may be tried again; `hasKept`: whether there is something to forget.
function pause(why, { canReturn = true, hasKept = state.hadSeat } = {}) {
  state.runs = false;
  keepAwake(false);
  say("");
  page.why.textContent = why;
  page.back.hidden = !canReturn;
  for (const id of ["forget", "forget-note"]) page[id].hidden = !hasKept;
  show("paused");
}

async function pauseBy(error) {
  if (error.isFinal && !state.hadSeat) await ask("forget").catch(() => {}); // the key that it drew is of no use
  const line = sentence(error.message);
  pause(error.isFinal ? line : `It cannot go on here. ${line}`, { canReturn: !error.isFinal });
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
  const token = location.hash.slice(1);
  if (!token) {
    pause("This address is not whole. Open the link as the organiser gave it, with # and what follows it.", {
      canReturn: false,
    });
    return;
  }
  const opened = await ask("open", { url: `${scheme}://${location.host}/ws`, token, version: about.runtime });
  state.key = opened.key;
  state.isKept = opened.isKept;
  state.hadSeat = opened.hadKey;
  if (!about.deals) state.description = await ask("describe");
  else if (!opened.agreed) await ask("knock");
  if (opened.agreed && (about.deals || opened.agreed.own)) {
    await takePart(opened.agreed);
    return;
  }
  await showAsking();
}

async function showAsking() {
  const { about } = state;
  const browser = nameBrowser(navigator.userAgent);
  fill(page.asked, describeAsked(about, state.isKept, isSecureContext && "wakeLock" in navigator));
  fill(page.leaves, describeLeaving(about, browser));
  fill(page.stays, describeStaying(about, state.isKept));
  page["open-network"].hidden = !isOpenNetwork(location);
  page.name.placeholder = browser;
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
  page.own.hidden = page.jump.hidden = false;
  page["way-choice"].hidden = fitting.length < 2;
  page.way.replaceChildren(...fitting.map(({ title }, i) => new Option(title, i)));
  const choose = () => {
    state.way = fitting[page.way.value];
    page.agree.disabled = true;
    page["way-place"].replaceChildren();
    state.way.show(page["way-place"], description, ({ numTrain, numTest, problem }) => {
      page.agree.disabled = Boolean(problem) || !numTrain;
      const found = numTrain ? `${numTrain} examples to train on; ${numTest} more are held out for tests.` : "";
      page["own-problem"].textContent = problem || found;
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
    const { ending, isErased } = await ask("run", { name: agreed.name, own: agreed.own });
    if (ending === "stopped") {
      pause("You have stopped. The run goes on without this device, and you can come back.", { hasKept: true });
    } else {
      await showEnd(isErased);
    }
  } catch (error) {
    await pauseBy(error);
  }
}

// What the client tells of.
function hear(what, details) {
  if (what === "connected") say("Connected. The run begins when enough devices are here.");
  else if (what === "lost") say("The connection is lost; the page tries again by itself.");
  else if (what === "welcome") say(`Joined as client ${details.client}.`);
  if (what === "done") state.end = details.text;
  if (what === "welcome") state.hadSeat = true;
  progress.hear(what, details);
}

async function showEnd(isErased) {
  state.runs = false;
  keepAwake(false);
  const { rounds, sentBytes } = progress.summarize();
  const done = `Since it was last loaded, this page trained in ${rounds} and sent ${sentBytes}.`;
  page.summary.textContent = `${sentence(state.end)} ${done}`;
  page.erased.textContent = isErased
    ? "This browser keeps nothing of the run any more. The page still has the last model and the examples, until it " +
      "is closed."
    : "This browser did not let the page erase what it kept of the run: clear the data of this site in its settings.";
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
  try {
    await ask("forget");
    state.hadSeat = false;
    pause("All of this run is forgotten in this browser. You can close this page.", { canReturn: false });
  } catch (error) {
    page.why.textContent = sentence(error.message);
  }
});
page.jump.addEventListener("click", () => {
  page.own.scrollIntoView();
  page["own-title"].focus({ preventScroll: true });
});
addEventListener("hashchange", () => location.reload());
document.addEventListener("visibilitychange", () => {
  if (!state.runs) return;
  if (document.hidden) page["hidden-note"].hidden = false;
  else ask("wake");
});
start().catch(pauseBy);
