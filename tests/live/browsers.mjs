// Chromium pages that take part in a live run: `node tests/live/browsers.mjs <link>...`, each in a context of its own.
// They agree, wait until the run is over, and a line of JSON is printed of each: what it shows, what it should not do,
// and how much memory it has. $SHOTS is a folder for screenshots of the first one.

import { findOverflow, launch, openPage, SIZES, takeShot } from "../web/open_page.mjs";

export const LONG = { timeout: 600_000 };

// A page of a link on a phone's screen; its problems are those of `openPage`, but that it may ask its own server.
export async function openLink(browser, link, options = {}) {
  const opened = await openPage(browser, link, { viewport: SIZES.phone, ...options });
  const { origin } = new URL(link);
  await opened.page.goto(link);
  const isOwn = (problem) => problem.startsWith(`request: ${origin}/`);
  return { ...opened, findProblems: () => opened.problems.filter((problem) => !isOwn(problem)) };
}

export async function waitFor(page, name) {
  await page.waitForSelector(`html[data-shown="${name}"]`, LONG);
}

export async function readEnd(page) {
  await page.waitForFunction(() => document.querySelector("#tested").textContent, null, LONG);
  return page.evaluate(() => ["summary", "tested"].map((id) => document.getElementById(id).textContent).join(" "));
}

async function takePart(browser, link, shots) {
  const { page, findProblems } = await openLink(browser, link);
  await waitFor(page, "asking");
  await takeShot(page, shots, "asking");
  await page.click("#agree");
  await page.waitForFunction(() => document.querySelector("#rounds").value > 1, null, LONG);
  const early = await page.evaluate(() => performance.memory.usedJSHeapSize);
  await takeShot(page, shots, "working");
  await page.waitForFunction(() => document.documentElement.dataset.shown !== "working", null, LONG);
  const shown = await readEnd(page);
  await takeShot(page, shots, "over");
  const problems = [...findProblems(), ...(await findOverflow(page, SIZES.phone))];
  const heap = [early, await page.evaluate(() => performance.memory.usedJSHeapSize)];
  console.log(JSON.stringify({ browser: "chromium", shown, problems, heap }));
  return problems.length === 0;
}

if (process.argv[1].endsWith("/browsers.mjs")) {
  const browser = await launch();
  const links = process.argv.slice(2);
  const fine = await Promise.all(links.map((link, i) => takePart(browser, link, i ? "" : process.env.SHOTS)));
  await browser.close();
  process.exitCode = fine.every(Boolean) ? 0 : 1;
}
