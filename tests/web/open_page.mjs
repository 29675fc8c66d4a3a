// Opens pages for the scripts that drive them, and notes whatever a page should not do. $BROWSER is the program: Firefox
// where $BROWSER_KIND is "firefox", else Chromium.
//
// Playwright drives the Firefox of a distribution by WebDriver BiDi. From 1.64 on it sends it a command for the colour
// scheme that Firefox 153 does not know, hence 1.63.

import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const playwright = createRequire(path.resolve(".web-test/package.json"))("playwright-core");
export const isFirefox = process.env.BROWSER_KIND === "firefox";
export const WAIT = { timeout: 240_000 }; // a busy machine takes long to compile 9 MB of WebAssembly
export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
// Of "body {}", which Playwright adds to a page before a screenshot in Firefox. The page's policy refuses it, as it should.
const SHOT_STYLE = "sha256-YjaKGiklmzC6wjXA513HAMmzus8VE61XCOT+SmwNZWA=";

// A browser whose contexts may be light or dark. Firefox has its colours from a preference, so each scheme is one more.
export async function launch() {
  const executablePath = process.env.BROWSER;
  if (!isFirefox) return playwright.chromium.launch({ executablePath });
  const started = new Map();
  const start = (scheme) => {
    const firefoxUserPrefs = { "layout.css.prefers-color-scheme.content-override": scheme === "dark" ? 0 : 1 };
    return playwright.firefox.launch({ channel: "moz-firefox", executablePath, firefoxUserPrefs });
  };
  return {
    async newContext({ colorScheme, isMobile, ...options }) {
      if (!started.has(colorScheme)) started.set(colorScheme, await start(colorScheme));
      return started.get(colorScheme).newContext(options);
    },
    close: () => Promise.all([...started.values()].map((browser) => browser.close())),
  };
}

// {context, page, problems}: `problems` grows by every error on the console, every request for something else, and every
// page that this one opens.
export async function openPage(browser, url, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => {
    if (!String(error).includes(SHOT_STYLE)) problems.push(`uncaught: ${error}`);
  });
  page.on("request", (request) => {
    const isOwn = request.url() === url || /^(data|blob):/.test(request.url());
    if (!isOwn) problems.push(`request: ${request.url()}`);
  });
  page.on("popup", (popup) => problems.push(`opens ${popup.url()}`));
  return { context, page, problems };
}

// Presses every button that is shown, those of the charts' toolbars as well, and says which there were: none may make a
// request, which `openPage` notes.
export async function pressButtons(page) {
  // A note of the chart's has a button, too, and goes by itself.
  const buttons = page.locator("button:visible:not(.notifier-close), .modebar-btn:visible");
  const pressed = [];
  for (let i = 0; i < (await buttons.count()); i++) {
    const button = buttons.nth(i);
    pressed.push((await button.getAttribute("data-title")) ?? (await button.textContent()).trim());
    await button.click({ force: true });
  }
  await page.waitForTimeout(1000);
  return pressed;
}

// Writes a picture of the whole page into a folder, if there is one.
export async function takeShot(page, folder, name) {
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true });
}

// A line if the page is wider than the screen.
export async function findOverflow(page, size) {
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  return width > size.width ? [`it is ${width} pixels wide on a screen of ${size.width}`] : [];
}

// Runs something with the address of a page on a server of this machine alone.
export async function serve(pagePath, run) {
  const server = createServer((request, response) => {
    const isPage = request.url === "/page.html";
    response.writeHead(isPage ? 200 : 404, { "Content-Type": "text/html; charset=utf-8" });
    response.end(isPage ? readFileSync(pagePath) : "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await run(`http://127.0.0.1:${server.address().port}/page.html`);
  } finally {
    server.close();
  }
}

// Opens a page of launch.export and waits until it is ready.
export async function startPage(browser, url, options, isCompat) {
  const { context, page, problems } = await openPage(browser, url, options);
  if (isCompat) await page.addInitScript(refuseRelaxedSimd);
  await page.goto(url);
  await page.waitForSelector("html[data-ready], #status.failed", WAIT);
  return { context, page, problems };
}

// Runs in the page: the few bytes with which LiteRT.js asks for relaxed SIMD are refused, as an older browser does.
function refuseRelaxedSimd() {
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = (source, ...others) =>
    source.byteLength < 100 ? Promise.reject(new Error("no relaxed SIMD")) : instantiate(source, ...others);
}
