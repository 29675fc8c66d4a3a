// Takes part in a live run as a careful person would, in Chromium: `node tests/live/visit_page.mjs <link>`. By keyboard
// alone it agrees, loads the page again, has it frozen and woken, stops and comes back, sees the server go and come
// back, and draws in the end. `stage <name>` says how far it is, `held` that the server may go: it has done its part of
// round 3, in which the other client waits. What is wrong comes out as lines, and the code 1. $SHOTS is a folder for
// screenshots.

import { findOverflow, launch, SIZES, takeShot } from "../web/open_page.mjs";
import { openLink, readEnd, waitFor } from "./browsers.mjs";
import { findLowContrast } from "./contrast.mjs";

const LONG = { timeout: 240_000 };
const SHOTS = process.env.SHOTS;
// What a browser writes on the console while a server is away.
const IS_AWAY = /WebSocket connection to .* failed|ERR_CONNECTION_REFUSED/;
const problems = [];

function check(isFine, text) {
  if (!isFine) problems.push(text);
}

function tell(stage) {
  console.log(`stage ${stage}`);
}

async function look(page, name) {
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    problems.push(...(await findLowContrast(page)).map((line) => `${name}, ${colorScheme}: ${line}`));
    await takeShot(page, SHOTS, `${name}_${colorScheme}`);
  }
  problems.push(...(await findOverflow(page, SIZES.phone)).map((line) => `${name}: ${line}`));
}

// Presses Tab until an element has the focus.
async function tabTo(page, id) {
  for (let i = 0; i < 30; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.id === wanted, id)) return;
  }
  throw new Error(`the Tab key does not lead to #${id}`);
}

async function waitForAnswer(page) {
  await page.waitForFunction(
    () => /waiting for the others/.test(document.querySelector("#round").textContent),
    null,
    LONG,
  );
}

async function visit(page) {
  await waitFor(page, "asking");
  await look(page, "asking");
  check((await page.inputValue("#name")) === "", "a name is given that nobody has typed");
  await tabTo(page, "agree");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /Round 3 .*waiting/.test(document.querySelector("#round").textContent), null, LONG);
  await look(page, "working");

  tell("load the page again");
  await page.reload();
  await waitFor(page, "working"); // it was agreed before
  await waitForAnswer(page);

  tell("freeze it, as a phone that is locked");
  const devTools = await page.context().newCDPSession(page);
  await devTools.send("Page.setWebLifecycleState", { state: "frozen" });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  await devTools.send("Page.setWebLifecycleState", { state: "active" });

  tell("have it out of sight"); // which a browser without a window never has
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { get: () => true, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    delete document.hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  });
  check(await page.isVisible("#hidden-note"), "it does not say that it was out of sight");

  tell("stop, and come back");
  await tabTo(page, "stop");
  await page.keyboard.press("Enter");
  await waitFor(page, "paused");
  await look(page, "paused");
  await tabTo(page, "back");
  await page.keyboard.press("Enter");
  await waitFor(page, "working");
  await waitForAnswer(page);

  console.log("held");
  await page.waitForFunction(
    () => /connection is lost/.test(document.querySelector("#status").textContent),
    null,
    LONG,
  );
  tell("the server is away");
  await waitFor(page, "over"); // it comes back by itself
  const end = await readEnd(page);
  check(/over after 5 rounds.*right on \d+ of \d+/.test(end), `the end says: ${end}`);

  tell("draw");
  await tabTo(page, "board");
  for (const key of ["ArrowUp", "Space", ...Array(8).fill("ArrowDown"), "Space"]) await page.keyboard.press(key);
  await page.waitForFunction(() => /%/.test(document.querySelector("#answer").textContent), null, LONG);
  await look(page, "over");
  const numKept = await page.evaluate(countKept);
  check(numKept === 0, `${numKept} entries are kept after the run is over`);
  check(/keeps nothing/.test(await page.textContent("#erased")), "it does not say that it keeps nothing");
}

// A page of a link that is none says so at once, and has nothing to press.
async function visitInVain(link, line, name) {
  const other = await openLink(browser, link);
  await waitFor(other.page, "paused");
  const why = await other.page.textContent("#why");
  check(line.test(why), `${name}: it says: ${why}`);
  check((await other.page.locator("button:visible").count()) === 0, `${name}: there is a button`);
  check(name === "no_token" || (await other.page.evaluate(countKept)) === 0, `${name}: it keeps something`);
  await look(other.page, name);
  problems.push(...other.findProblems());
  await other.context.close();
}

// Runs in the page.
function countKept() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("live-rounds");
    request.onerror = () => reject(request.error);
    request.onsuccess = () => {
      const counted = request.result.transaction("kept").objectStore("kept").count();
      counted.onsuccess = () => resolve(counted.result);
    };
  });
}

const browser = await launch();
const { page, findProblems } = await openLink(browser, process.argv[2]);
try {
  const [address] = process.argv[2].split("#");
  await visitInVain(address, /not whole/, "no_token");
  await visitInVain(`${address}#wrong`, /not one of this run's/, "wrong_token");
  await visit(page);
} catch (error) {
  problems.push(String(error), `it shows: ${await page.evaluate(() => document.body.innerText)}`);
}
problems.push(...findProblems().filter((problem) => !IS_AWAY.test(problem)));
await browser.close();
for (const problem of problems) console.log(`problem: ${problem}`);
process.exit(problems.length ? 1 : 0);
