import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startHttp } from "./start-http.ts";

const folder = mkdtempSync(path.join(tmpdir(), "longwatch-console-"));
const SCRIPT = "export const answer = 42;\n".repeat(200);
const PAGE = '<!doctype html><meta property="csp-nonce" nonce="__CSP_NONCE__"><div id="root"></div>';
const HTML = { headers: { accept: "text/html,*/*;q=0.8" } };

beforeAll(() => {
  mkdirSync(path.join(folder, "assets"));
  writeFileSync(path.join(folder, "index.html"), PAGE);
  writeFileSync(path.join(folder, ".sources"), "hidden");
  writeFileSync(path.join(folder, "assets", "index-4f1d.js"), SCRIPT);
  writeFileSync(path.join(folder, "assets", "old-77aa.js"), SCRIPT);
  writeFileSync(path.join(folder, "assets", "index-4f1d.js.br"), brotliCompressSync(SCRIPT));
  writeFileSync(path.join(folder, "assets", "index-4f1d.js.gz"), gzipSync(SCRIPT));
});
afterAll(() => rmSync(folder, { recursive: true }));

const start = (consoleFolder = folder) => startHttp({ consoleFolder });

test("every address of the console answers with the page, each time with another nonce", async () => {
  const { url } = await start();
  const nonces = new Set<string>();
  for (const address of ["/", "/alerts/17", "/sign-in", "/explorer?q=%3Cscript%3E", "/nowhere/at/all"]) {
    const answer = await fetch(url + address, HTML);
    const policy = answer.headers.get("content-security-policy") ?? "";
    const nonce = /style-src 'self' 'nonce-([\w-]{22})'/.exec(policy)?.[1] ?? "";
    expect([address, answer.status, answer.headers.get("cache-control")]).toEqual([address, 200, "no-store"]);
    expect(await answer.text()).toBe(PAGE.replace("__CSP_NONCE__", nonce));
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("require-trusted-types-for 'script'; trusted-types default");
    expect(policy).not.toMatch(/unsafe|\*/);
    nonces.add(nonce);
  }
  expect(nonces.size).toBe(5);
});

test("programs, other methods and the addresses of the API are not answered with the page", async () => {
  const { url } = await start();
  const statuses = await Promise.all(
    (
      [
        ["/alerts/17", { headers: { accept: "application/json" } }],
        ["/alerts/17", { ...HTML, method: "POST" }],
        ["/livez/x", HTML],
        ["/docs/nowhere", HTML],
        ["/assets/gone-1234.js", HTML],
        ["/.sources", HTML],
        ["/..%2findex.html", HTML],
      ] as const
    ).map(async ([address, init]) => {
      const answer = await fetch(url + address, init);
      return [address, answer.status, (await answer.text()).includes('id="root"')];
    }),
  );
  expect(statuses.slice(0, 5).map(([, status]) => status)).toEqual([404, 404, 404, 404, 404]);
  expect(statuses.slice(0, 5).filter(([, , isPage]) => isPage)).toEqual([]);
  const hidden = await fetch(`${url}/.sources`, HTML);
  expect(await hidden.text()).not.toContain("hidden");
});

test("a file that a new build has removed is not found", async () => {
  const { url } = await start();
  const file = path.join(folder, "assets", "old-77aa.js");
  expect((await fetch(`${url}/assets/old-77aa.js`)).status).toBe(200);
  rmSync(file);
  expect((await fetch(`${url}/assets/old-77aa.js`)).status).toBe(404);
});

test.each([
  ["br", "br"],
  ["gzip", "gzip"],
  ["identity", null],
])(
  "a file is sent compressed as the browser accepts (%s), and is kept for good",
  async (accepts, encoding) => {
    const { url } = await start();
    const answer = await fetch(`${url}/assets/index-4f1d.js`, { headers: { "accept-encoding": accepts } });
    expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, encoding]);
    expect(answer.headers.get("content-type")).toMatch(/javascript/);
    expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(await answer.text()).toBe(SCRIPT);
  },
);

test("without a built console the page says how to build it", async () => {
  const { url } = await start(path.join(folder, "missing"));
  const answer = await fetch(url, HTML);
  expect([answer.status, await answer.text()]).toEqual([
    503,
    expect.stringContaining("npm run build:console"),
  ]);
});
