import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { asCalled, findOwnCommand, ownCommand, startHint } from "#lib/process.ts";

const IN_CHECKOUT = "npm run -s longwatch --";

test("the program is called by its name where it is on the PATH, and by npm in a checkout", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-path-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const PATH = `/nowhere${path.delimiter}${folder}`;
  expect(findOwnCommand({ PATH })).toBe(IN_CHECKOUT);
  const program = path.join(folder, "longwatch");
  writeFileSync(program, "#!/bin/sh\n");
  chmodSync(program, 0o644);
  expect(findOwnCommand({ PATH })).toBe(IN_CHECKOUT);
  chmodSync(program, 0o755);
  expect(findOwnCommand({ PATH })).toBe("longwatch");
  expect(findOwnCommand({ PATH, npm_lifecycle_event: "start" })).toBe(IN_CHECKOUT);
});

test("an installed service does not advise npm start, which would start an emulator", () => {
  expect(startHint("longwatch")).not.toContain("npm");
  expect(startHint(IN_CHECKOUT)).toBe("run npm start");
  expect(ownCommand("status", "longwatch")).toBe("longwatch status");
});

test("texts name the program as it is called", () => {
  const text = "No data is stored yet: run npm start. More: npm run -s longwatch -- status";
  expect(asCalled(text, "longwatch")).toBe(
    "No data is stored yet: start the service (docs/deploy.md). More: longwatch status",
  );
  expect(asCalled(text, IN_CHECKOUT)).toBe(text);
});
