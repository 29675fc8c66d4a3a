// What a person is told before anything is joined. `about` is what the server says of its run.

import { formatBytes } from "./maths.js";

// `isKept`: whether the browser keeps what a page needs to come back; `isLit`: whether it can keep the screen on.
export function describeAsked(about, isKept, isLit) {
  const { rounds, deals, runtimeBytes, fileBytes, modelBytes, examples, deadlineS } = about;
  const model = formatBytes(modelBytes);
  const count = examples[0] === examples[1] ? examples[0] : `${examples[0]} to ${examples[1]}`;
  const lines = [
    `Once, ${formatBytes(runtimeBytes + fileBytes)} are loaded: the program that trains, and the model.`,
    `In each of ${rounds} ${rounds === 1 ? "round" : "rounds"} about ${model} come and ${model} go, ` +
      `${formatBytes(2 * rounds * modelBytes)} in all.`,
    deals ? `It trains on ${count} examples that the server gives it.` : "It trains on examples that you choose.",
    `A round may take ${formatSeconds(deadlineS)} at most. The first ones show how long it takes here; ` +
      "then the page says how long is left.",
    "A core of this device works meanwhile: plug it in, if the run is long.",
    isLit
      ? "The screen stays on while this page is in sight, if the battery is not low."
      : "The screen goes dark as always, since browsers let no such page keep it on. Keep it on by hand: phones " +
        "pause pages in the dark.",
  ];
  return isKept ? lines : [...lines, "This browser keeps nothing, so leave this page open until the end."];
}

// `browser` is the name that is sent if none is given.
export function describeLeaving({ modelBytes, private: isPrivate }, browser) {
  const lines = [
    `What training has changed of the model: ${formatBytes(modelBytes)} of numbers a round. ` +
      "They can tell something of the examples.",
    "How many examples it has, their mean loss, and the seconds that training took.",
    `The name below, or without one “${browser}”; that it is a browser; and a random key by which the server knows ` +
      "it again.",
    "The server sees the network address that this device has, as of every page.",
  ];
  if (isPrivate) {
    const line =
      "This run is private towards all but its server. The server sees each update by itself, clips it, and adds " +
      "noise to the sum, so that the model tells little of any one device.";
    lines.splice(1, 0, line);
  }
  return lines;
}

export function describeStaying({ deals }, isKept) {
  const lines = [
    deals ? "Whatever is on this device: the page reads none of it." : "Your examples: they stay in this browser.",
    "Nothing goes to anybody else: the browser lets this page speak to its own server alone.",
  ];
  const kept = "The key, the model's file and the last answer are kept in this browser until the run is over.";
  return isKept ? [...lines, kept] : lines;
}

// Whether others can read along: no TLS, and not within this machine.
export function isOpenNetwork({ protocol, hostname }) {
  return protocol !== "https:" && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname);
}

// Such as "Firefox on Android", which is suggested as a name.
export function nameBrowser(agent) {
  const find = (names) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = find([
    [/Edg/, "Edge"],
    [/Firefox/, "Firefox"],
    [/Chrome|CriOS/, "Chrome"],
    [/Safari/, "Safari"],
  ]);
  const system = find([
    [/Android/, "Android"],
    [/iPhone|iPad/, "iOS"],
    [/Windows/, "Windows"],
    [/Mac/, "macOS"],
    [/Linux/, "Linux"],
  ]);
  return [browser ?? "browser", system].filter(Boolean).join(" on ");
}

export function formatSeconds(seconds) {
  if (seconds < 90) return seconds < 10 ? `${Math.max(seconds, 0.1).toFixed(1)} s` : `${Math.round(seconds)} s`;
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} minutes`;
  return `${Math.round(seconds / 3600)} hours`;
}
