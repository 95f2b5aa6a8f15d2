import { spawnSync } from "node:child_process";
import path from "node:path";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { adoptRemote, putRemoteFirst } from "#faces/cli/operations/remote-commands.ts";
import { loadProgram } from "#faces/cli/program.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

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
  ["alerts list", "asks", "asks"],
  ["coverage withdraw", "asks", "asks"],
  ["config routes test", "asks", "asks"],
  ["status", "asks", "asks"],
  ["mcp", "asks", "asks"],
  ["start", "refused", "runs here"],
  ["doctor", "refused", "runs here"],
  ["config check", "refused", "runs here"],
  ["erase", "refused", "refused"],
  ["export", "refused", "refused"],
  ["restore", "refused", "refused"],
  ["archive verify", "refused", "refused"],
] as const)(
  "%s, given a service elsewhere with --url: %s, with LONGWATCH_URL: %s",
  (words, option, variable) => {
    const command = findCommand(words);
    const run = (given: { url?: string }, env: NodeJS.ProcessEnv) => () => adoptRemote(given, command, env);
    const env: NodeJS.ProcessEnv = {};
    const byOption = run({ url: "https://waf.example" }, env);
    if (option === "asks") expect(byOption).not.toThrow();
    else
      expect(byOption).toThrow(
        `--url cannot be used with ${words}, which works on the machine of the service`,
      );
    expect(env).toEqual(option === "asks" ? { LONGWATCH_URL: "https://waf.example" } : {});
    const byVariable = run({}, { LONGWATCH_URL: "https://waf.example" });
    if (variable === "refused") expect(byVariable).toThrow(`LONGWATCH_URL cannot be used with ${words}`);
    else expect(byVariable).not.toThrow();
  },
);

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
