import type { Command } from "commander";
import { expect, test } from "vitest";
import { isRemote } from "#faces/cli/operations/remote-commands.ts";
import { loadProgram } from "#faces/cli/program.ts";
import { OWN_COMMAND } from "#lib/process.ts";
import { OPERATIONS } from "#operations/index.ts";
import type { Operation } from "#operations/operation.ts";

const UPDATE = "node_modules/.bin/vitest run test/docs/cli.test.ts --update";
const INTRODUCTION = `<!-- Made from the commands: ${UPDATE} -->

# Commands

\`\`\`sh
npm run -s longwatch -- alerts list                    # in a checkout; installed or in a container: longwatch alerts list
npm run -s longwatch -- alerts list --help             # every option, its default, exit codes and examples
source <(npm run -s longwatch -- completion bash)      # or zsh, fish: defines longwatch, and Tab completes
longwatch --url https://waf.example --key-file FILE alerts list     # asks a service elsewhere
\`\`\`

- **Settings** are environment variables ([all of them](configuration.md)). On the machine of a running service, commands find that
  service's settings by themselves.
- **Elsewhere:** the commands with a \`°\` can ask a service on another machine with \`--url\` and \`--key-file\`, or \`LONGWATCH_URL\` and
  \`LONGWATCH_KEY_FILE\`. The key decides what they show and may do. Plain http to another machine needs \`--plain-http\`. All other
  commands refuse \`--url\`. Those that work on the database or its files refuse \`LONGWATCH_URL\`, too.
- **Exit codes:** 0 success, 1 a failure, 2 a mistake in the command line or the settings. The help names other ones, such as those of
  \`status\`.
- **Times:** \`2026-11-27T20:51\` or \`2026-11-27 20:51\` (UTC, if no zone is named), \`now\`, \`today\`, \`yesterday\`, \`-2h\` or \`-1d12h\`
  (\`ms\`, \`s\`, \`m\`, \`h\`, \`d\`, \`w\`), and epoch milliseconds. Output is in UTC.
- **Output:** \`--json\` prints the API's shapes ([api.md](api.md#lists-errors-streams)).`;

test("docs/cli.md has a line for every command", async () => {
  const index = toIndex(await loadProgram());
  await expect(index, `make docs/cli.md again: ${UPDATE}`).toMatchFileSnapshot("../../docs/cli.md");
});

function toIndex(program: Command): string {
  const groups = [...Map.groupBy(listVisible(program), (command) => command.helpGroup())].map(
    ([heading, members]) =>
      `## ${heading.replace(/:$/, "")}\n\n${members.flatMap((one) => toLines(one)).join("\n")}`,
  );
  return `${[INTRODUCTION, ...groups].join("\n\n")}\n`;
}

/** Returns the line of a command with the first sentence of its description, or those of the commands below it. */
function toLines(command: Command, above: readonly string[] = []): string[] {
  const path = [...above, command.name()];
  const below = listVisible(command);
  const lines = below.flatMap((one) => toLines(one, path));
  // A command that only groups others asks nothing itself.
  if (below.length > 0 && !isRemote(command)) return lines;
  const operands = command
    .usage()
    .replaceAll(/\[(options|command)\]/g, "")
    .trim();
  const typed = [...path, ...(operands === "" ? [] : [operands])].join(" ");
  const text = command.description().replaceAll(OWN_COMMAND, "longwatch").replaceAll(/\s+/g, " ");
  const first = /^.*?\.(?= |$)/.exec(text)?.[0] ?? text;
  return [`- \`${typed}\`${isRemote(command) ? " °" : ""}: ${first}`, ...lines];
}

function listVisible(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== "help");
}

test("every operation with a command has it", async () => {
  const program = await loadProgram();
  const isThere = ({ name }: Operation) => {
    const [subject = ""] = name.split(".");
    return program.commands.some((one) => one.name() === subject || one.aliases().includes(subject));
  };
  const missing = OPERATIONS.filter((one: Operation) => one.command !== undefined && !isThere(one));
  expect(missing.map(({ name }) => name)).toEqual([]);
});
