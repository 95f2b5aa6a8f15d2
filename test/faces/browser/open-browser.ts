import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { findProgram } from "../../support/find-program.ts";
import type { SignedIn } from "./sign-in.ts";

/** The browser on this machine; null where there is none. The one without windows takes an eighth less time. */
export const CHROMIUM = findProgram(
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
);

const ARGUMENTS = [
  // As root, Chromium has no sandbox of its own.
  "--no-sandbox",
  // A process for each tab would load the console anew.
  "--process-per-site",
  // A page of a test lives for minutes. The last of the optimizing compilers costs more than it saves in them, the others less.
  "--js-flags=--no-opt",
];

export async function openBrowser(): Promise<Browser> {
  const name = CHROMIUM;
  if (name === null) throw new Error("chromium is not on PATH");
  const { execFileSync } = await import("node:child_process");
  const executablePath = execFileSync("/bin/sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
  return chromium.launch({ executablePath, args: ARGUMENTS });
}

/** Runs in the page, whose types the tests do not have. */
const WATCH = `
  document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sample }) =>
    globalThis.violated(violatedDirective + " " + blockedURI + " " + sample));
  globalThis.alert = (text) => globalThis.tripped(String(text));`;

export interface Watched {
  readonly context: BrowserContext;
  readonly openPage: () => Promise<Page>;
  /** Violations of the content policy, failures of scripts, foreign requests, and scripts that ran out of data. */
  readonly faults: string[];
}

export interface WatchedOptions {
  readonly origin: string;
  /** Default: nobody is signed in. */
  readonly signedIn?: SignedIn | null;
  readonly width?: number;
  readonly theme?: "dark" | "light";
}

/** A window whose pages note every fault. Text of events that runs as a script calls `tripped`. */
export async function openWatched(
  browser: Browser,
  { origin, signedIn = null, width = 1440, theme = "dark" }: WatchedOptions,
): Promise<Watched> {
  const context = await browser.newContext({
    baseURL: origin,
    viewport: { width, height: width < 500 ? 740 : 900 },
    hasTouch: width < 500,
    isMobile: width < 500,
    // Every frame of an animation costs processor time. The phone shows them.
    ...(width < 500 ? {} : { reducedMotion: "reduce" }),
    acceptDownloads: true,
    ...(signedIn === null ? {} : { storageState: { ...signedIn } }),
  });
  const faults: string[] = [];
  await context.exposeFunction("tripped", (what: string) => void faults.push(`script ran: ${what}`));
  await context.exposeFunction("violated", (what: string) => void faults.push(`content policy: ${what}`));
  await context.addInitScript({
    content: `localStorage.setItem("mantine-color-scheme-value", "${theme}");${WATCH}`,
  });
  async function openPage(): Promise<Page> {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(`script failed: ${error.message}`));
    page.on("request", (request) => {
      const url = new URL(request.url());
      const isOwn = url.origin === origin || url.protocol === "blob:" || url.protocol === "data:";
      if (!isOwn) faults.push(`foreign request: ${request.url()}`);
    });
    return page;
  }
  return { context, openPage, faults };
}

export const CONTENT = "main section, main form, main [role=alert]";
export const AWAITED = "[aria-busy=true], .lw-stale, .mantine-Skeleton-root, .mantine-Loader-root";

/** Waits until the page shows its data: no skeleton, nothing awaited. The page's policy forbids waiting for a script. */
export async function settle(page: Page): Promise<void> {
  await page.locator(CONTENT).first().waitFor({ state: "attached", timeout: 60_000 });
  await page.locator(AWAITED).first().waitFor({ state: "detached", timeout: 60_000 });
}
