// Opens the organiser's page of a live run and says in lines of JSON what it shows: `node tests/live/watch.mjs <link>
// [<folder of pictures>]`. See watch.py.

import { createInterface } from "node:readline";
import { findOverflow, isFirefox, launch, openPage, takeShot } from "../web/open_page.mjs";

const LIMIT = { timeout: 120_000 };
const WIDE = { width: 1920, height: 1080 };
const PHONE = { width: 390, height: 844 };
const [link, shots] = process.argv.slice(2);
const origin = new URL(link).origin;
// What the page may ask for.
const OWN = new RegExp(`^request: ${origin}/(organiser|page/organiser[a-z_]*\\.(js|css))$`);
// What browsers say of a server that is gone, beside the page.
const GONE = /WebSocket connection to 'ws:[^']*' failed|can’t establish a connection|was interrupted while the page/;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (seen) => console.log(JSON.stringify(seen));
const browser = await launch();
const { page, problems } = await openPage(browser, link, { viewport: WIDE, colorScheme: "light" });
const find = (isGone = false) => problems.filter((each) => !OWN.test(each) && !(isGone && GONE.test(each)));
const read = async (...ids) => {
  const texts = await page.evaluate((all) => all.map((id) => document.getElementById(id).textContent.trim()), ids);
  return Object.fromEntries(ids.map((id, i) => [id, texts[i]]));
};

await page.goto(link);
await page.waitForFunction(() => document.getElementById("here").textContent === "1", null, LIMIT);
await page.locator("#enlarge").focus();
await page.keyboard.press("Enter");
const isLarge = await page.locator("#large").evaluate((dialog) => dialog.open);
await page.keyboard.press("Escape");
say({
  ...(await read("here", "seats", "expected", "link")),
  code: await page.locator("#code path").last().evaluate((path) => path.getAttribute("d").length),
  hash: await page.evaluate(() => location.hash),
  isLarge,
  isLargeAfterEscape: await page.locator("#large").evaluate((dialog) => dialog.open),
  wrong: await readTrouble(`${origin}/organiser#wrong`),
  none: await readTrouble(`${origin}/organiser`),
  problems: find(),
});
await takeShot(page, shots, "organiser_waiting");

await page.waitForFunction(() => !document.getElementById("slow").hidden, null, LIMIT);
await page.waitForSelector("#rejected:not([hidden])", LIMIT);
const sizes = await page.evaluate(() =>
  ["round", "here", "accuracy"].map((id) => parseFloat(getComputedStyle(document.getElementById(id)).fontSize)),
);
const shown = {
  slow: await page.locator("#slow").evaluate((each) => each.textContent.trim()),
  rejected: await page.locator("#rejected").evaluate((each) => each.textContent.trim()),
  names: await page.locator("#body th").allTextContents(),
  notices: await page.locator("#notices li").allTextContents(),
  injected: await page.locator("img, main script").count(),
  hacked: await page.evaluate(() => "hacked" in window),
  faint: await page.evaluate(findFaint),
  overflow: await findOverflow(page, WIDE),
  sizes,
};
await takeShot(page, shots, "organiser_running");
if (!isFirefox) {
  await page.emulateMedia({ colorScheme: "dark" }); // which Firefox does by a preference alone
  shown.faint.push(...(await page.evaluate(findFaint)));
  await page.emulateMedia({ colorScheme: "light" });
}
await page.setViewportSize(PHONE);
shown.overflow.push(...(await findOverflow(page, PHONE)));
await takeShot(page, shots, "organiser_running_phone");
await page.setViewportSize(WIDE);
say({ ...shown, problems: find() });

await page.waitForSelector("#trouble:not([hidden])", LIMIT);
say(await read("trouble"));
await lines.next();
await page.waitForFunction(() => document.body.dataset.state === "waiting", null, LIMIT);
say({
  ...(await read("here", "expected", "round")),
  hasCurve: await page.evaluate(() => document.querySelector("#curve .end") !== null),
});

await page.waitForSelector("[data-state=over]", LIMIT);
await page.waitForFunction(() => document.querySelector("#curve polyline"), null, LIMIT);
say({
  ...(await read("trouble", "round", "rounds", "accuracy", "down", "up", "others", "pace", "here-title")),
  states: await page.locator("#body td:nth-child(3)").allTextContents(),
  lastTick: await page.evaluate(() => [...document.querySelectorAll("#curve .tick + text")].at(-1).textContent),
  progress: await page.locator("#progress").evaluate((each) => each.position),
  points: await page.locator("#curve polyline").getAttribute("points"),
  axis: await page.evaluate(() => {
    const ys = [...document.querySelectorAll("#curve .grid")].map((line) => Number(line.getAttribute("y1")));
    return [Math.min(...ys), Math.max(...ys)];
  }),
  commands: await page.locator("#results code").allTextContents(),
  problems: find(true),
});
await takeShot(page, shots, "organiser_over");
await browser.close();
process.exit(0);

// What another page of this address says is wrong with it.
async function readTrouble(address) {
  const context = await browser.newContext({ colorScheme: "light" });
  const other = await context.newPage();
  await other.goto(address);
  await other.waitForSelector("#trouble:not([hidden])", LIMIT);
  const text = await other.locator("#trouble").textContent();
  await context.close();
  return text;
}

// Runs in the page: texts that stand out by less than 4.5 to 1, in what is shown.
function findFaint() {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const straighten = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = colour.map((each) => straighten(each / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const findBack = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const back = parse(getComputedStyle(each).backgroundColor);
      if (back.length === 3 || back[3] > 0) return back.slice(0, 3);
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText || !element.getClientRects().length || element.closest("dialog, noscript, script")) continue;
    const style = getComputedStyle(element);
    const fore = light(parse(element.closest("svg") ? style.fill : style.color).slice(0, 3));
    const back = light(findBack(element));
    const ratio = (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05);
    if (ratio < 4.5) faint.push(`${element.id || element.tagName} ${ratio.toFixed(2)}`);
  }
  return faint;
}
