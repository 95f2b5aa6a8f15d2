/**
 * Writes a picture of every page, in both themes and at two widths, into `screenshots`. It looks at a running service:
 *
 *     LONGWATCH_URL=http://127.0.0.1:8080 LONGWATCH_KEY=lw_... npm run screenshots
 */
import { mkdirSync } from "node:fs";
import path from "node:path";
import { openBrowser, openWatched } from "./open-browser.ts";
import { PAGES, show } from "./pages.ts";
import { signIn } from "./sign-in.ts";

const folder = path.join(import.meta.dirname, "..", "..", "..", "screenshots");
const origin = process.env["LONGWATCH_URL"] ?? "http://127.0.0.1:8080";
const key = process.env["LONGWATCH_KEY"];
if (key === undefined)
  throw new Error("LONGWATCH_KEY is not set. It must be a key of the service at LONGWATCH_URL.");

mkdirSync(folder, { recursive: true });
const browser = await openBrowser();
try {
  const signedIn = await signIn(browser, origin, key);
  for (const theme of ["dark", "light"] as const)
    for (const width of [1440, 360]) {
      const { context, openPage } = await openWatched(browser, { origin, signedIn, theme, width });
      const page = await openPage();
      for (const shown of PAGES) {
        await show(page, shown);
        await page.screenshot({ path: path.join(folder, `${shown.name}-${width}-${theme}.png`) });
      }
      await context.close();
    }
} finally {
  await browser.close();
}
process.stdout.write(`${folder}\n`);
