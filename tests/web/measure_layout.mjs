// Where a page has its answer, and how large is what a finger must hit.

import { setTimeout as sleep } from "node:timers/promises";
import { SIZES } from "./open_page.mjs";

const SMALLEST = { width: 360, height: 640 };
const TARGET = 44; // pixels of height

// Lines for what is wrong on a small phone and on a desktop: the answer must be in sight at the top of the page and at the
// last of the inputs that `inputs` selects, which it may not cover, and what is pressed must be high enough.
export async function measureLayout(page, inputs, size) {
  const problems = [];
  for (const each of [SMALLEST, SIZES.desktop]) {
    await page.setViewportSize(each);
    for (const isLast of [false, true]) {
      await page.evaluate(scrollTo, [inputs, isLast]);
      await sleep(100);
      const found = await page.evaluate(findFaults, [inputs, isLast, TARGET]);
      problems.push(...found.map((fault) => `${each.width} x ${each.height}, ${isLast ? "last input" : "top"}: ${fault}`));
    }
  }
  await page.setViewportSize(size);
  await page.evaluate(scrollTo, [inputs, false]);
  return problems;
}

// These run in the page, so they can use nothing from outside of themselves.

function scrollTo([inputs, isLast]) {
  window.scrollTo(0, 0);
  const last = [...document.querySelectorAll(inputs)].filter((input) => input.checkVisibility()).at(-1);
  if (isLast) last.scrollIntoView({ block: "end" });
}

function findFaults([inputs, isLast, target]) {
  const faults = [];
  const box = document.querySelector(".answer").getBoundingClientRect();
  const rounding = 0.5; // of the browsers' own sums, in pixels
  const isInside = ({ top, bottom, left, right }) =>
    Math.min(top, left, innerHeight - bottom, innerWidth - right) >= -rounding;
  if (!isInside(box)) faults.push(`the answer lies from ${box.top} to ${box.bottom}`);
  for (const id of ["answer", "agreement"]) {
    const own = document.getElementById(id).getBoundingClientRect();
    if (own.height && !isInside(own)) faults.push(`#${id} lies from ${own.top} to ${own.bottom}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the screen");
  if (!isLast) return faults;
  const last = [...document.querySelectorAll(inputs)].filter((input) => input.checkVisibility()).at(-1);
  const { left, top, width, height } = last.getBoundingClientRect();
  if (document.elementFromPoint(left + width / 2, top + height / 2) !== last) faults.push("the last input is covered");
  for (const element of document.querySelectorAll("button, select, input, summary")) {
    const own = element.getBoundingClientRect();
    if (element.checkVisibility() && own.height < target - rounding) faults.push(`${element.id || element.textContent} is ${own.height} high`);
  }
  return faults;
}
