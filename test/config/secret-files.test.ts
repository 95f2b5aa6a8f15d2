import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import type { UsageError } from "#lib/errors.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const SECRET = "s3cret-0f5a";

/** What editors and consoles make of a secret, and the rule that refuses it. */
const BROKEN: readonly [name: string, content: Buffer, rule: string][] = [
  ["nothing", Buffer.from("\n"), "must not be empty"],
  ["a byte order mark", Buffer.from(`\uFEFF${SECRET}\n`), "must not begin with a byte order mark"],
  ["a leading blank", Buffer.from(` ${SECRET}\n`), "must not begin or end with a blank"],
  ["a trailing blank", Buffer.from(`${SECRET} \n`), "must not begin or end with a blank"],
  ["a trailing tab", Buffer.from(`${SECRET}\t`), "must not begin or end with a blank"],
  ["a hard space at its end", Buffer.from(`${SECRET}\u00A0`), "must not begin or end with a blank"],
  ["a second line", Buffer.from(`${SECRET}\nother\n`), "must have one line"],
  ["an empty second line", Buffer.from(`${SECRET}\r\n\r\n`), "must have one line"],
  ["UTF-16 of Windows", Buffer.from(`\uFEFF${SECRET}\r\n`, "utf16le"), "must be text in UTF-8"],
  ["UTF-16 without a mark", Buffer.from(SECRET, "utf16le"), "must be text in UTF-8"],
  ["Latin-1", Buffer.from("schl\u00FCssel", "latin1"), "must be text in UTF-8"],
];

function mistakesOf(read: () => unknown): readonly string[] {
  try {
    read();
    return [];
  } catch (thrown) {
    return (thrown as UsageError).mistakes;
  }
}

test.each(BROKEN)(
  "a file of a secret with %s is refused wherever secrets are read",
  (_name, content, rule) => {
    const folder = makeTemporaryFolder("secrets");
    const file = path.join(folder, "key");
    writeFileSync(file, content);
    const config = path.join(folder, "longwatch.yaml");
    writeFileSync(config, "channels: { pager: { kind: opsgenie, api_key_file: ./key } }");
    const mistakes = [
      ...mistakesOf(() => parseConfig({ EDGE_API_URL: "https://edge.example", EDGE_API_KEY_FILE: file })),
      ...mistakesOf(() => parseConfig({ LONGWATCH_CONFIG: config })),
    ].filter((mistake) => /KEY_FILE|api_key_file/.test(mistake));
    expect(mistakes).toEqual([
      expect.stringContaining(`EDGE_API_KEY_FILE: ${JSON.stringify(file)}: ${rule}`),
      expect.stringContaining(`channels.pager.api_key_file: "./key": ${rule}`),
    ]);
    expect(mistakes.join("")).not.toContain(SECRET);
  },
);

test.each([SECRET, `${SECRET}\n`, `${SECRET}\r\n`, "Bearer with blanks inside\n", "schl\u00FCssel"])(
  "a file of a secret with %j is taken",
  (content) => {
    const folder = makeTemporaryFolder("secrets");
    writeFileSync(path.join(folder, "key"), content);
    const config = parseConfig({
      EDGE_API_URL: "https://edge.example",
      EDGE_API_KEY_FILE: path.join(folder, "key"),
      EDGE_SHIELD_ZONES: "101",
    });
    expect(config.edge.key?.reveal()).toBe(content.trimEnd());
  },
);

test("a key that is read again while the service runs keeps to the same rules", () => {
  const folder = makeTemporaryFolder("secrets");
  const file = path.join(folder, "key");
  writeFileSync(file, SECRET);
  const config = parseConfig({
    EDGE_API_URL: "https://edge.example",
    EDGE_API_KEY_FILE: file,
    EDGE_SHIELD_ZONES: "101",
  });
  for (const [, content, rule] of BROKEN) {
    writeFileSync(file, content);
    expect(config.rereadKey()).toEqual({ mistake: expect.stringContaining(rule) });
  }
  expect(config.edge.key?.reveal()).toBe(SECRET);
});
