import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { capabilitiesOf } from "../support/capabilities.ts";
import { fillDocument, KINDS, shownIn } from "../support/channel-docs.ts";

const ROOT = path.join(import.meta.dirname, "..", "..", "..");
const FILE = path.join(ROOT, "docs", "channels.md");
const text = readFileSync(FILE, "utf8");

test("docs/channels.md shows what the channels send now (vitest -u rewrites it)", async () => {
  await expect(fillDocument(text)).toMatchFileSnapshot(FILE);
});

test("every kind has its section, and two kinds show what they send", () => {
  const shown = ["terminal first", "webhook first"];
  expect(shownIn(text)).toEqual(shown);
  for (const kind of KINDS) {
    expect(text).toContain(`\n## ${kind}\n`);
    expect(text).toContain(`<!-- settings ${kind} -->`);
    expect(text).toContain(`kind: ${kind}`);
  }
});

test("docs/channels.md has the rate of each channel, and a link to its messages", () => {
  for (const kind of KINDS) {
    const section = text.split(`\n## ${kind}\n`)[1]?.split("\n## ")[0] ?? "";
    expect(section).toContain(`${capabilitiesOf(kind).rate.perMinute} messages a minute`);
    expect(section).toContain(`test/delivery/channels/${kind}/golden`);
  }
});

test("every file that docs/channels.md links to exists", () => {
  const links = [...text.matchAll(/\]\((?!<?http)([^)#]+)(?:#[^)]*)?\)/g)].map(([, link]) => link ?? "");
  expect(links.length).toBeGreaterThan(KINDS.length);
  for (const link of links)
    expect([link, existsSync(path.resolve(path.dirname(FILE), link))]).toEqual([link, true]);
});
