import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { asTypedHere, ownCommand, startHint } from "../src/own-command.ts";
import { makeTemporaryFolder } from "./support/temporary-folder.ts";

function installed(mode: number): NodeJS.ProcessEnv {
  const folder = makeTemporaryFolder("own-command");
  const program = path.join(folder, "longwatch");
  writeFileSync(program, "#!/bin/sh\n");
  chmodSync(program, mode);
  return { PATH: `/nowhere::${folder}` };
}

test("where the program is on PATH, advice names it; in a checkout it names npm", () => {
  const [image, checkout] = [installed(0o755), { PATH: "/nowhere" }];
  expect(ownCommand("status", image)).toBe("longwatch status");
  expect(ownCommand("status", checkout)).toBe("npm run -s longwatch -- status");
  expect(ownCommand("status", {})).toBe("npm run -s longwatch -- status");
  expect(asTypedHere("  npm run -s longwatch -- status\n", image)).toBe("  longwatch status\n");
  expect(asTypedHere("  npm run -s longwatch -- status\n", checkout)).toContain("npm run");
});

test("where the service was installed, nobody is advised to run npm start, which would start an emulator", () => {
  expect(startHint(installed(0o755))).not.toContain("npm");
  expect(startHint({ PATH: "" })).toBe("run npm start");
});

test("a file of the program's name that cannot be run is no program", () => {
  expect(ownCommand("status", installed(0o644))).toContain("npm run");
});
