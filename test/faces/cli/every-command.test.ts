import type { Command } from "commander";
import { expect, test } from "vitest";
import { loadProgram } from "#faces/cli/program.ts";

interface Named {
  /** As it is typed: `alerts list`. */
  readonly name: string;
  readonly command: Command;
}

function* walk(command: Command, path: readonly string[] = []): Generator<Named> {
  for (const child of command.commands) {
    const name = [...path, child.name()];
    yield { name: name.join(" "), command: child };
    yield* walk(child, name);
  }
}

function helpOf(command: Command): string {
  let text = "";
  command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
  return text;
}

const ALL = [...walk(await loadProgram())];
const LEAVES = ALL.filter(({ command }) => command.commands.length === 0);

test("the help of the program, which loads no command, is that of the loaded commands", async () => {
  expect(helpOf(await loadProgram("help"))).toBe(helpOf(await loadProgram()));
});

test("the walk finds the commands", () => {
  const names = LEAVES.map(({ name }) => name);
  for (const name of ["start", "status", "alerts list", "edge events export", "emulator"])
    expect(names).toContain(name);
  expect(LEAVES.length).toBeGreaterThan(40);
});

test.each(LEAVES)("$name takes --json", ({ command }) => {
  expect(command.options.map(({ long }) => long)).toContain("--json");
});

test.each(ALL)("the help of $name has an example of it", ({ name, command }) => {
  const [, examples = ""] = helpOf(command).split("\nExamples:\n");
  const calls = name === "start" ? "npm start" : `npm run -s longwatch -- ${name}`;
  expect(examples).toContain(calls);
});

test("every list command can be limited or has an end, and names its columns", () => {
  const paged = LEAVES.filter(({ command }) => command.options.some(({ long }) => long === "--after"));
  expect(paged.map(({ name }) => name).sort()).toEqual([
    "alerts list",
    "audit list",
    "deliveries list",
    "forward hours",
    "forward refused",
    "keys list",
    "notes list",
    "quarantine list",
    "rules list",
    "silences list",
    "spikes list",
    "zones list",
  ]);
  for (const { command } of paged)
    expect(command.options.map(({ long }) => long)).toEqual(expect.arrayContaining(["--limit", "--json"]));
});
