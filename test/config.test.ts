import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { parseConfig, requireEdge } from "../src/config.ts";
import { UsageError } from "../src/errors.ts";

function mistakesOf(run: () => unknown): readonly string[] {
  try {
    run();
  } catch (thrown) {
    if (thrown instanceof UsageError) return thrown.mistakes;
    throw thrown;
  }
  return [];
}

test("every mistake is listed at once with variable, value and rule", () => {
  const mistakes = mistakesOf(() =>
    parseConfig({
      EDGE_API_URL: "nope",
      EDGE_SHIELD_ZONES: "1,x",
      EDGE_API_KEY: "k",
      EDGE_API_KEY_FILE: "/f",
    }),
  );

  expect(mistakes).toHaveLength(3);
  expect(mistakes).toContain('EDGE_API_URL: "nope": must be an http or https URL');
  expect(mistakes).toContain('EDGE_SHIELD_ZONES: "1,x": must be whole numbers above 0, separated by commas');
  expect(mistakes).toContain('EDGE_API_KEY_FILE: "/f": must not be set together with EDGE_API_KEY');
});

test("an empty environment is valid, and empty variables count as unset", () => {
  expect(parseConfig({ EDGE_API_URL: "" }).edge).toEqual({ url: null, key: null, zones: [] });
});

test("zones are read as numbers without doubles", () => {
  expect(parseConfig({ EDGE_SHIELD_ZONES: "102, 101,102" }).edge.zones).toEqual([102, 101]);
});

test("a command that needs the platform names both missing variables", () => {
  expect(mistakesOf(() => requireEdge(parseConfig({})))).toHaveLength(2);
});

test("a secret comes from its file without the last line end and cannot be printed", () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "longwatch-config-")), "key");
  writeFileSync(file, "canary-key\n");
  const config = parseConfig({ EDGE_API_URL: "https://api.example.test", EDGE_API_KEY_FILE: file });

  expect(requireEdge(config).accessKey.reveal()).toBe("canary-key");
  expect(`${inspect(config, { depth: 9 })}${JSON.stringify(config)}${String(config.edge.key)}`).not.toContain(
    "canary",
  );
});

test("a secret file that cannot be read is a mistake that names the file", () => {
  const mistakes = mistakesOf(() => parseConfig({ EDGE_API_KEY_FILE: "/nowhere/key" }));

  expect(mistakes[0]).toMatch(/^EDGE_API_KEY_FILE: "\/nowhere\/key": must be a readable file/);
});
