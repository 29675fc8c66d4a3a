// The organiser's page: shows the status of a live run that its server sends over a WebSocket, and sends nothing but
// the token that is in the page's address. What clients say of themselves is text and goes into the page as text alone.

import { showClients } from "./organiser_clients.js";
import { drawCurve } from "./organiser_curve.js";
import { formatBytes, formatCount, formatDuration, formatShare } from "./organiser_words.js";

const FIRST_PAUSE_MS = 1000; // before it tries to connect again; doubled each time
const LONGEST_PAUSE_MS = 3000; // a run that goes on may be short
const SAID_EVERY_MS = 10_000; // rounds may be shorter than what a screen reader says of them
const MOST_NAMED = 6;
const KEPT = "organiser's token";
const WRONG_TOKEN = 1008;

const find = (id) => document.getElementById(id);
const write = (id, text) => {
  const element = find(id);
  if (element.textContent !== text) element.textContent = text;
};

let status = null; // the newest
let skewS = 0; // by how much this clock is ahead of the server's
let isFirst = true; // of a connection: it may have been made long before
let saidAt = 0;
let pauseMs = FIRST_PAUSE_MS;
let lostS = null; // when the connection was lost, seconds; null: there is one

// The address is on a screen that a room sees, so the token goes from it; a page that is loaded again still has it.
function takeToken() {
  const given = location.hash.slice(1);
  try {
    if (given) sessionStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname);
    return given || sessionStorage.getItem(KEPT) || "";
  } catch {
    return given; // a browser that keeps nothing
  }
}

function connect(token) {
  const address = new URL("watch", location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  socket.onopen = () => {
    isFirst = true;
    socket.send(token);
  };
  socket.onmessage = (event) => {
    pauseMs = FIRST_PAUSE_MS;
    status = JSON.parse(event.data);
    lostS = null;
    measureSkew();
    showTrouble("");
    show();
  };
  socket.onclose = (event) => {
    lostS ??= Date.now() / 1000;
    const shown = status ? ` It shows round ${countRound()}.` : "";
    if (event.code === WRONG_TOKEN) {
      const right = "open the one after “watch” in the server's terminal";
      showTrouble(`This is not the organiser's link of this run: ${right}.${shown}`);
    } else if (status?.state === "over") {
      showTrouble("");
    } else {
      const what = status ? `shows round ${countRound()}` : "nothing to show yet";
      showTrouble(`Connection to the server lost; ${what}. Trying again …`);
      setTimeout(connect, pauseMs, token);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  };
}

function measureSkew() {
  const lagS = Date.now() / 1000 - status.made;
  if (isFirst) skewS = Math.min(0, lagS);
  else skewS = Math.min(skewS || lagS, lagS);
  isFirst = false;
}

function showTrouble(text) {
  write("trouble", text);
  find("trouble").hidden = !text;
}

function show() {
  find("main").hidden = false;
  document.body.dataset.state = status.state;
  document.body.classList.toggle("begun", status.history.length > 0);
  write("name", status.name);
  write("folder", status.folder);
  showRound();
  showHere();
  showBytes();
  showInvite();
  showEnd();
  showNotices();
  showAges();
  drawCurve(find("curve"), status.history, status.state === "over" ? status.round : status.rounds);
}

// What changes with time alone; without a connection nothing does.
function showAges() {
  const nowS = (lostS ?? Date.now() / 1000) - skewS;
  const { slow, rejected } = showClients(status, nowS);
  showNamed("slow", slow, (seat) => formatDuration(nowS - seat.asked));
  showNamed("rejected", rejected, (seat) => formatCount(seat.rejected, "answer"));
}

function showNamed(id, seats, describe) {
  find(id).hidden = seats.length === 0;
  const named = seats.slice(0, MOST_NAMED).map((seat) => `${seat.name || "client"} (${describe(seat)})`);
  const others = seats.length > MOST_NAMED ? ` and ${formatCount(seats.length - MOST_NAMED, "other")}` : "";
  const text = named.join(", ") + others;
  const place = find(id).querySelector("span");
  if (place.textContent !== text) place.textContent = text;
}

// The round that runs, else the last one.
function countRound() {
  return Math.min(status.round + (status.state === "running" ? 1 : 0), status.rounds);
}

function showRound() {
  const { round, rounds, state, history } = status;
  const running = countRound();
  write("round", state === "waiting" && !round ? "–" : formatNumber(running));
  write("rounds", `of ${formatNumber(rounds)}`);
  find("progress").max = rounds;
  find("progress").value = round;
  write("pace", describePace(status));
  const last = history.findLast((each) => each.accuracy !== null);
  const shown = last ? formatShare(last.accuracy) : "–";
  write("accuracy", last ? (100 * last.accuracy).toFixed(1) : "–");
  write("unit", last ? "%" : "");
  const best = history.reduce((most, each) => (each.accuracy > (most?.accuracy ?? -1) ? each : most), null);
  const parts = [];
  if (last && last.loss !== null) parts.push(`loss ${last.loss.toPrecision(3)}`);
  if (best?.accuracy > last?.accuracy) parts.push(`best ${formatShare(best.accuracy)}`);
  write("loss", last ? parts.join(", ") : "after the first round");
  document.title = state === "waiting" ? `${status.here} here, waiting` : `Round ${running} of ${rounds}, ${shown}`;
  if (Date.now() - saidAt > SAID_EVERY_MS || state !== document.body.dataset.said) {
    saidAt = Date.now();
    document.body.dataset.said = state;
    const reached = last ? `, accuracy ${shown}` : "";
    const where = state === "over" ? `The run is over after round ${round}` : `Round ${running} of ${rounds}`;
    write("said", `${where}${reached}`);
  }
}

// In the end all rounds count, and before the last ones, by which the time left is told.
function describePace({ history, state, here, needed, round, rounds, totals }) {
  if (state === "waiting") return here < needed ? "waiting for clients" : round ? "it goes on" : "it begins";
  if (state === "over") return round ? `done, ${formatPace(totals.seconds / round)}` : "done";
  const last = history.slice(-10);
  if (!last.length) return "the first one runs";
  const seconds = last.reduce((sum, each) => sum + each.seconds, 0) / last.length;
  return `${formatPace(seconds)}, about ${formatDuration(seconds * (rounds - round))} left`;
}

function formatPace(seconds) {
  return `${seconds < 10 ? Number(seconds.toPrecision(2)) : Math.round(seconds)} s a round`;
}

const formatNumber = (number) => number.toLocaleString("en");

function showHere() {
  const { here, needed, state, seats } = status;
  write("here", formatNumber(here));
  write("seats", `of ${formatNumber(seats.length)}`);
  const missing = needed - here;
  const more = `${formatCount(missing, "more client")} ${missing === 1 ? "has" : "have"} to come`;
  const busy = `${formatNumber(status.answered)} of ${formatNumber(status.asked)} asked have answered`;
  write("here-title", state === "over" ? "Clients at the end" : "Clients here");
  const begun = state === "waiting" ? "enough" : status.waits ? busy : "";
  write("expected", state === "over" ? "" : missing > 0 ? more : begun);
}

function showBytes() {
  write("down", formatBytes(status.totals.bytes_down));
  write("up", formatBytes(status.totals.bytes_up));
}

function showInvite() {
  const { link, qr, free, shared } = status.invite;
  const isOpen = Boolean(link) && status.state !== "over";
  find("invite").hidden = !isOpen;
  if (!isOpen) {
    find("large").close();
    return;
  }
  for (const id of ["code", "large-code"]) drawCode(find(id), qr);
  for (const id of ["link", "large-link"]) write(id, link);
  write("free", `(${formatCount(free, "seat")} free)`);
  find("use").hidden = shared || free < 2;
  find("copy").hidden = !navigator.clipboard;
}

function drawCode(svg, { size, path }) {
  if (svg.dataset.path === path) return;
  svg.dataset.path = path;
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  const dark = document.createElementNS(svg.namespaceURI, "path");
  dark.setAttribute("d", path);
  const light = document.createElementNS(svg.namespaceURI, "path");
  light.setAttribute("d", `M0 0h${size}v${size}h-${size}z`);
  light.setAttribute("class", "light");
  svg.replaceChildren(light, dark);
}

function showEnd() {
  find("after").hidden = status.state !== "over";
  if (status.state !== "over") return;
  const last = status.history.findLast((each) => each.accuracy !== null);
  const at = last && (last.round === status.round ? "in the end" : `in round ${last.round}`);
  const reached = last ? `, accuracy ${formatShare(last.accuracy)} ${at}` : "";
  write("reached", `${formatCount(status.round, "round")}${reached}. The server has ended; this page stays as it is.`);
  if (find("results").children.length) return; // it may be selected
  const later = status.report ? ", when it has written the report, some seconds later" : "";
  if (!status.commands.length) return;
  const when = `In the server's terminal${later}:`;
  find("results").append(make("p", when), ...status.commands.map(makeCommand));
}

// Its lines break between arguments alone, since browsers break them after a "--", too.
function makeCommand(text) {
  const element = make("code", "");
  element.append(...text.split(" ").flatMap((part) => [make("span", part), " "]).slice(0, -1));
  return element;
}

function make(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  return element;
}

function showNotices() {
  find("notes").hidden = status.notices.length === 0;
  const shown = [...status.notices].reverse();
  const list = find("notices");
  if (list.dataset.shown === JSON.stringify(shown)) return;
  list.dataset.shown = JSON.stringify(shown);
  list.replaceChildren(...shown.map((line) => make("li", line)));
}

// A screen that goes dark is of no use to a room. Browsers allow it on this machine, and else with TLS.
async function stayAwake() {
  if (document.visibilityState !== "visible" || !navigator.wakeLock) return;
  try {
    await navigator.wakeLock.request("screen");
  } catch {
    // Not now, as with little battery.
  }
}

find("copy").onclick = async () => {
  try {
    await navigator.clipboard.writeText(status.invite.link);
    write("copy", "Copied");
  } catch {
    write("copy", "Not allowed: select the link");
  }
  setTimeout(write, 2000, "copy", "Copy link");
};
find("enlarge").onclick = () => find("large").showModal();
new ResizeObserver(() => {
  if (status) drawCurve(find("curve"), status.history, status.state === "over" ? status.round : status.rounds);
}).observe(find("curve"));
setInterval(() => status && status.state !== "over" && showAges(), 1000);
document.addEventListener("visibilitychange", stayAwake);
stayAwake();
const token = takeToken();
if (token) connect(token);
else showTrouble("The link is not whole: open that after “watch” in the server's terminal, with what follows its #.");
