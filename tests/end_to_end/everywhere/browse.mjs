// node browse.mjs CHROMIUM ORIGIN: opens the page and prints what its encode() makes of the texts on stdin.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [executablePath, origin] = process.argv.slice(2);
const texts = JSON.parse(readFileSync(0, "utf8"));

// Chromium's own sandbox needs rights that root in a container lacks; it sees our page alone.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  const elsewhere = [];
  await page.route(
    (url) => url.protocol.startsWith("http") && url.origin !== origin,
    (route) => {
      elsewhere.push(route.request().url());
      return route.abort();
    },
  );
  page.on("pageerror", (error) => console.error(error));
  page.on("console", (message) => console.error(message.text()));
  await page.goto(origin);
  await page.waitForFunction(() => globalThis.encode, undefined, { timeout: 60_000 });
  const vectors = await page.evaluate((texts) => globalThis.encode(texts), texts);
  if (elsewhere.length) throw new Error(`asked for ${elsewhere.join(", ")}`);
  console.log(JSON.stringify(vectors));
} finally {
  await browser.close();
}
