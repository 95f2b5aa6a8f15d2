import { spawnSync } from "node:child_process";
import path from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { adoptRemote, putRemoteFirst } from "#faces/cli/operations/remote-commands.ts";
import { loadProgram } from "#faces/cli/program.ts";
import type { UsageError } from "#lib/errors.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";

const program = await loadProgram();
const SERVICE = ["--url", "https://waf.example", "--key-file", "k"];

function findCommand(words: string): Command {
  return words
    .split(" ")
    .reduce((above, word) => above.commands.find((one) => one.name() === word) ?? above, program);
}

test.each([
  ["in front", [...SERVICE, "alerts", "list"], [...SERVICE, "alerts", "list"]],
  ["behind the command", ["alerts", "list", "--json", ...SERVICE], [...SERVICE, "alerts", "list", "--json"]],
  [
    "between its words",
    ["alerts", "--url=https://waf.example", "list"],
    ["--url=https://waf.example", "alerts", "list"],
  ],
  [
    "with the one that has no value",
    ["alerts", "list", "--plain-http", "--json", ...SERVICE],
    ["--plain-http", ...SERVICE, "alerts", "list", "--json"],
  ],
  ["without a value", ["alerts", "list", "--url"], ["--url", "alerts", "list"]],
  ["of the command itself", ["silences", "add", "--url", "/login"], ["silences", "add", "--url", "/login"]],
  [
    "of both",
    [...SERVICE, "silences", "add", "--url=/login"],
    [...SERVICE, "silences", "add", "--url=/login"],
  ],
])("options with the name of those that name a service elsewhere: %s", (_where, typed, read) => {
  expect(putRemoteFirst(typed, program)).toEqual(read);
});

test.each([
  ["alerts list", false, false],
  ["coverage withdraw", false, false],
  ["config routes test", false, false],
  ["status", false, false],
  ["mcp", false, false],
  ["search", false, false],
  ["start", true, false],
  ["doctor", true, false],
  ["config check", true, false],
  ["erase", true, true],
  ["export", false, false],
  ["tail", false, false],
  ["top", false, false],
  ["backfill", true, true],
  ["restore", true, true],
  ["archive verify", true, true],
])("%s is refused with --url: %s, and with LONGWATCH_URL: %s", (words, byOption, byVariable) => {
  const command = findCommand(words);
  const isRefused = (given: { url?: string }, env: NodeJS.ProcessEnv) => {
    try {
      adoptRemote(given, command, env);
      return false;
    } catch (thrown) {
      const [said = ""] = (thrown as UsageError).mistakes;
      return said.includes(` cannot be used with ${words}, which works on the machine of the service`);
    }
  };
  const env: NodeJS.ProcessEnv = {};
  expect(isRefused({ url: "https://waf.example" }, env)).toBe(byOption);
  expect(env).toEqual(byOption ? {} : { LONGWATCH_URL: "https://waf.example" });
  expect(isRefused({}, { LONGWATCH_URL: "https://waf.example" })).toBe(byVariable);
});

test.each([
  [
    "a silence of a path",
    ["silences", "add", "--zone", "101", "--url", "/login", "--for", "2h"],
    "longwatch silences add: 1 mistake, nothing was read or stored\n  - --reason is missing\n",
  ],
  [
    "an erasure that was meant for another machine",
    [...SERVICE, "erase", "--ip", "203.0.113.7"],
    "longwatch: 1 mistake, nothing was started\n  - --url cannot be used with erase, which works on the machine of the service. Run it there, without --url\n",
  ],
])("%s is read as such by the whole program", (_what, args, said) => {
  const entry = path.resolve("src/bootstrap.mjs");
  const { LONGWATCH_URL: _url, ...env } = process.env;
  const folder = makeTemporaryFolder("remote-commands");
  const ran = spawnSync(process.execPath, [entry, "longwatch", ...args], {
    env: { ...env, LONGWATCH_DATA_DIR: folder },
    encoding: "utf8",
  });
  expect({ code: ran.status, err: ran.stderr }).toEqual({ code: 2, err: said });
});
