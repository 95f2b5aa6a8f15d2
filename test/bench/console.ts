import { AWAITED, CONTENT, openBrowser, openWatched, settle } from "../faces/browser/open-browser.ts";
import { signIn } from "../faces/browser/sign-in.ts";
import { alignColumns } from "./tables.ts";

const ROWS = 10_000;
const MAX_MS = 120_000;

export interface ConsoleBenchResult {
  /** Milliseconds from the navigation to the overview with all its numbers, per turn. */
  readonly overviewMs: readonly number[];
  /** Compressed bytes of the first load. */
  readonly firstLoadBytes: number;
  readonly rows: number;
  /** Frames while the rows were scrolled, by how long they took. */
  readonly frames: { readonly count: number; readonly over50Ms: number; readonly longestMs: number };
}

/** Measures the console of a running service in Chromium. */
export async function benchConsole({
  origin,
  key,
  repeats,
}: {
  readonly origin: string;
  readonly key: string;
  readonly repeats: number;
}): Promise<ConsoleBenchResult> {
  const browser = await openBrowser();
  try {
    const signedIn = await signIn(browser, origin, key);
    const overviewMs: number[] = [];
    let firstLoadBytes = 0;
    for (let turn = 0; turn < repeats; turn += 1) {
      const { context, openPage } = await openWatched(browser, { origin, signedIn });
      const page = await openPage();
      const session = await context.newCDPSession(page);
      await session.send("Network.enable");
      let bytes = 0;
      session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
      const begun = performance.now();
      await page.goto("/", { waitUntil: "commit" });
      await page.evaluate(USABLE);
      overviewMs.push(performance.now() - begun);
      firstLoadBytes = bytes;
      await context.close();
    }
    const { openPage } = await openWatched(browser, { origin, signedIn });
    const page = await openPage();
    await page.goto("/explorer?span=72h");
    await settle(page);
    const { rows, ...frames } = await page.evaluate<Scrolled>(SCROLL);
    return { overviewMs, firstLoadBytes, rows, frames };
  } finally {
    await browser.close();
  }
}

/**
 * Runs in the page: waits for the moment in which the page is settled and its chart is drawn. A locator would check half a
 * second apart, and most turns would wait for the next check.
 */
const USABLE = `new Promise((resolve) => {
  const check = () => {
    const isUsable = document.querySelector("${CONTENT}") !== null &&
      document.querySelector("${AWAITED}") === null && document.querySelector("canvas")?.checkVisibility();
    if (isUsable) resolve();
  };
  new MutationObserver(check).observe(document, { subtree: true, childList: true, attributes: true });
  check();
})`;

interface Scrolled {
  readonly rows: number;
  readonly count: number;
  readonly over50Ms: number;
  readonly longestMs: number;
}

/** Runs in the page: scrolls the events until so many were passed, and times every frame. */
const SCROLL = `(async () => {
  const list = document.querySelector("[aria-label=Events]");
  const begun = performance.now();
  const rowHeight = document.querySelector("[role=listitem]")?.getBoundingClientRect().height ?? 46;
  let last = begun;
  let [count, over50Ms, longestMs] = [0, 0, 0];
  while (list.scrollTop / rowHeight < ${ROWS} && performance.now() - begun < ${MAX_MS}) {
    list.scrollTop += 400;
    const now = await new Promise((resolve) => requestAnimationFrame(resolve));
    const tookMs = now - last;
    last = now;
    count += 1;
    longestMs = Math.max(longestMs, tookMs);
    if (tookMs > 50) over50Ms += 1;
  }
  return { rows: Math.round(list.scrollTop / rowHeight), count, over50Ms, longestMs };
})()`;

export function reportConsole({ overviewMs, firstLoadBytes, rows, frames }: ConsoleBenchResult): string {
  const sorted = [...overviewMs].sort((one, other) => one - other);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const ms = (value: number) => `${Math.round(value)} ms`;
  return alignColumns([
    ["navigation to usable overview, median", ms(median), "aim: under 1 s"],
    ["the same, slowest turn", ms(sorted.at(-1) ?? Number.NaN), ""],
    ["first load, script, style and data, compressed", `${Math.round(firstLoadBytes / 1_000)} kB`, ""],
    [`frames while ${rows} events were scrolled`, String(frames.count), ""],
    ["frames over 50 ms", String(frames.over50Ms), "aim: none"],
    ["longest frame", ms(frames.longestMs), ""],
  ]).join("\n");
}
