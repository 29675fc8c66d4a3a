// Opens pages in Chromium for the scripts that drive them, and notes whatever a page should not do. $CHROMIUM is the
// browser.

import { createRequire } from "node:module";
import path from "node:path";

export const { chromium } = createRequire(path.resolve(".web-test/package.json"))("playwright-core");
export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };

// {context, page, problems}: `problems` grows by every error on the console and every request for something else.
export async function openPage(browser, url, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`console ${message.type()}: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`uncaught: ${error}`));
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) problems.push(`request: ${request.url()}`);
  });
  return { context, page, problems };
}

// A line if the page is wider than the screen.
export async function findOverflow(page, size) {
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  return width > size.width ? [`it is ${width} pixels wide on a screen of ${size.width}`] : [];
}
