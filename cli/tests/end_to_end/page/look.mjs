// Opens pages in a browser and prints what happened as one JSON array. Arguments: the folder of node modules, the browser, a folder
// for screenshots or "-", and the pages, each below `file:`.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";

const [modules, browser, shots, ...pages] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const profile = mkdtempSync(join(tmpdir(), "code-commit-browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: browser,
  headless: true,
  chromiumSandbox: false,
  viewport: { width: 1280, height: 900 },
  args: [
    "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
  ],
});

// How a page is looked at: a phone, a desk, a wide screen, in the dark, on paper (A4 at 96 dots per inch, without margins).
const LOOKS = [
  { name: "narrow", width: 400 },
  { name: "narrow-dark", width: 360, colorScheme: "dark" },
  { name: "light", width: 1280 },
  { name: "dark", width: 1280, colorScheme: "dark" },
  { name: "wide", width: 1600 },
  { name: "print", width: 718, media: "print" },
];

// What makes the page wider than its window: a person would have to scroll sideways to read.
function tooWide() {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  const isOut = (one) => one.getBoundingClientRect().right > clientWidth ;
  return [scrollWidth + " of " + clientWidth, ...[...document.querySelectorAll("main *, header *")].filter(isOut).slice(0, 3).map(({ outerHTML }) => outerHTML.slice(0, 80))];
}

// Folds whose content nobody could read on paper.
function folded() {
  const content = (fold) => fold.querySelector(":scope > :not(summary)");
  const isShut = (fold) => content(fold) && !content(fold).checkVisibility();
  return [...document.querySelectorAll("details")].filter(isShut).map((fold) => fold.textContent.slice(0, 60));
}

// What a page says, loads and opens by itself.
async function look(file) {
  const page = await context.newPage();
  // A busy machine is slow, which is no finding.
  page.setDefaultTimeout(300_000);
  const found = { file: basename(file), messages: [], requests: [], dialogs: 0 };
  page.on("console", (message) => found.messages.push(message.text()));
  page.on("pageerror", (error) => found.messages.push(String(error)));
  page.on("request", (request) => found.requests.push(request.url()));
  page.on("dialog", (dialog) => { found.dialogs += 1; dialog.dismiss(); });
  const metrics = await context.newCDPSession(page);
  await metrics.send("Performance.enable", { timeDomain: "threadTicks" });
  await page.goto("file://" + file, { waitUntil: "load" });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const measured = (await metrics.send("Performance.getMetrics")).metrics;
  found.cpu_seconds = measured.find(({ name }) => name === "TaskDuration").value;
  found.scripts = await page.evaluate(() => document.scripts.length);
  found.text = await page.evaluate(() => document.body.innerText);
  found.too_wide = {};
  for (const { name, width, ...media } of LOOKS) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ media: "screen", colorScheme: "light", ...media });
    found.too_wide[name] = await page.evaluate(tooWide);
    if (media.media) found.folded = await page.evaluate(folded);
    if (shots === "-") continue;
    // The first screen is what has to tell.
    await page.screenshot({ path: join(shots, found.file.replace(/html$/, "") + name + ".png") });
  }
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  found.keyboard = await keyboard(page);
  await page.close();
  return found;
}

// What keys alone reach: the first stop, a fold, a sorted column, a filter.
async function keyboard(page) {
  const reached = {};
  await page.keyboard.press("Tab");
  reached.first = await page.evaluate(() => document.activeElement.textContent);
  const fold = await page.$("details:not([open]) > summary");
  if (fold) {
    await fold.focus();
    await page.keyboard.press("Enter");
    reached.unfolded = await fold.evaluate((summary) => summary.parentElement.open);
  }
  const head = page.locator("#list thead button").first();
  if (await head.count()) {
    await head.focus();
    await page.keyboard.press("Enter");
    reached.sorted = await page.locator("#list tbody tr th").first().textContent();
    await page.locator("#find").focus();
    await page.keyboard.type("run-0007");
    reached.shown = await page.locator("#shown").textContent();
    await page.locator("#find").fill("");
    if (await page.locator("#verdict option", { hasText: /^done$/ }).count()) {
      await page.locator("#kind").selectOption("commit");
      await page.locator("#verdict").selectOption("done");
      reached.chosen = await page.locator("#shown").textContent();
    }
    await page.locator(".filter").evaluate((form) => form.reset());
    await page.locator("#find").dispatchEvent("input");
  }
  return reached;
}

// Serious and critical findings of axe in a colour scheme. The protocol runs its script, which the page's policy would refuse.
async function check(file, scheme, width) {
  const page = await context.newPage();
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  await page.goto("file://" + file);
  await page.evaluate(axe);
  await page.evaluate(() => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
  // It need not describe every node that is in order.
  const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
  await page.close();
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return serious.map(({ id, nodes }) => scheme + " " + id + ": " + nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" "));
}

const all = [];
for (const file of pages) {
  const found = await look(file);
  found.findings = [...await check(file, "light", 1280), ...await check(file, "dark", 360)];
  all.push(found);
}
await context.close();

// Without script: everything is there, and nothing that would need one.
const plain = await chromium.launchPersistentContext(profile, {
  executablePath: browser, headless: true, chromiumSandbox: false, javaScriptEnabled: false, args: ["--disable-gpu"],
});
for (const [at, file] of pages.entries()) {
  const page = await plain.newPage();
  await page.goto("file://" + file);
  const visible = async (selector) => (await page.locator(selector).count()) > 0 && (await page.locator(selector).first().isVisible());
  all[at].without_script = { heading: await visible("h1"), filter: await visible(".filter"), button: await visible("button") };
  await page.close();
}
await plain.close();
rmSync(profile, { recursive: true, force: true });
console.log(JSON.stringify(all));
