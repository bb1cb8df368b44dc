// A reader of the site, in Chromium: notes what goes wrong, and what axe finds.
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = createRequire(import.meta.url).resolve("axe-core");
// For a machine that is busy with other things.
const TIMEOUT_MS = 120_000;

export class Reader {
  /** What went wrong on any page: errors, warnings of the console, failed requests, and requests to other hosts. */
  problems = [];

  /** Start Chromium; `address` is that of the site. */
  static async launch(executablePath, address) {
    const reader = new Reader();
    // Chromium's own sandbox needs rights that root in a container lacks; it sees our pages alone.
    reader.browser = await chromium.launch({ executablePath, args: ["--no-sandbox"], timeout: TIMEOUT_MS });
    reader.address = address;
    return reader;
  }

  /** Open a page of the site; `options` are those of Playwright, `blocked` a pattern of addresses that fail. */
  async open(path, options = {}, blocked = null) {
    const page = await this.browser.newPage(options);
    page.setDefaultTimeout(TIMEOUT_MS);
    page.on("pageerror", (error) => this.problems.push(String(error)));
    page.on("console", (message) => {
      const expected = blocked && message.location().url.match(blocked);
      if (["error", "warning"].includes(message.type()) && !expected) this.problems.push(message.text());
    });
    await page.route(
      (url) => url.protocol.startsWith("http") && url.origin !== new URL(this.address).origin,
      (route) => {
        this.problems.push(`asked for ${route.request().url()}`);
        return route.abort();
      },
    );
    if (blocked) await page.route(blocked, (route) => route.abort());
    page.on("response", (response) => response.ok() || this.problems.push(`${response.status()} ${response.url()}`));
    await page.goto(new URL(path, this.address).href);
    return page;
  }

  /** Return what axe finds on a page: each violation with the elements. */
  async violations(page) {
    await page.addScriptTag({ path: AXE });
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  }

  close() {
    return this.browser.close();
  }
}

/** Return the number of bytes that a page has loaded. */
export const loadedBytes = (page) =>
  page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .concat(performance.getEntriesByType("navigation"))
      .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0),
  );
