import type { Command } from "commander";
import { expect, test } from "vitest";
import { loadProgram } from "#faces/cli/program.ts";
import { OWN_COMMAND } from "#lib/own-command.ts";

const UPDATE = "node_modules/.bin/vitest run test/docs/cli.test.ts --update";
const INTRODUCTION = `<!-- Made from the commands: ${UPDATE} -->

# Commands

Every command and its options, as \`--help\` prints them. The program is called \`longwatch\` here. In a checkout, type
\`npm run -s longwatch --\` instead, or load the [completion](#completion), which defines \`longwatch\`.`;

test("docs/cli.md has the help of every command", async () => {
  const reference = toReference(await loadProgram());
  await expect(reference, `make docs/cli.md again: ${UPDATE}`).toMatchFileSnapshot("../../docs/cli.md");
});

function toReference(program: Command): string {
  const commands = listVisible(program);
  const groups = [...Map.groupBy(commands, (command) => command.helpGroup())].map(
    ([heading, members]) => `- **${heading}** ${members.map(toLink).join(", ")}`,
  );
  const parts = [
    INTRODUCTION,
    groups.join("\n"),
    fence(program),
    ...commands.flatMap((command) => toSections(command)),
  ];
  return `${parts.join("\n\n")}\n`;
}

function toLink(command: Command): string {
  return `[${command.name()}](#${command.name()})`;
}

/** Returns the section of a command, and those of the commands below it. */
function toSections(command: Command, above: readonly string[] = []): string[] {
  const path = [...above, command.name()];
  const heading = above.length === 0 ? "##" : "###";
  const below = listVisible(command).flatMap((one) => toSections(one, path));
  return [`${heading} ${path.join(" ")}\n\n${fence(command)}`, ...below];
}

function fence(command: Command): string {
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 80 }).outputHelp();
  return `\`\`\`text\n${help.replaceAll(OWN_COMMAND, "longwatch").trimEnd()}\n\`\`\``;
}

function listVisible(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== "help");
}
