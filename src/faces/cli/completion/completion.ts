import path from "node:path";
import { Argument, type Command } from "commander";
import { isInstalled } from "#lib/process.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { SUMMARIES } from "../summaries.ts";
import { toBashScript } from "./bash-script.ts";
import { toFishScript } from "./fish-script.ts";
import { type CommandNode, listNodes } from "./list-nodes.ts";
import { toZshScript } from "./zsh-script.ts";

const SCRIPTS: Readonly<Record<string, (nodes: readonly CommandNode[]) => string>> = {
  bash: toBashScript,
  zsh: toZshScript,
  fish: toFishScript,
};
const ROOT = path.join(import.meta.dirname, "..", "..", "..", "..");
const SHELLS = Object.keys(SCRIPTS);

const HELP = `
The script completes commands and options of the program "longwatch". It is made from the commands of this version. Load it
when the shell starts, so that it is always that of the installed version:

  bash   add to ~/.bashrc: source <(npm run -s longwatch -- completion bash)
  zsh    add to ~/.zshrc, below compinit: source <(npm run -s longwatch -- completion zsh)
  fish   add to ~/.config/fish/config.fish: npm run -s longwatch -- completion fish | source

In a checkout the script also defines the command longwatch, if there is none. It works in every folder. In the file of the
shell, write the folder too: npm --prefix /path/to/longwatch run -s longwatch -- completion bash.

The command needs neither the service nor the database.

Examples:
  npm run -s longwatch -- completion bash
  npm run -s longwatch -- completion zsh > ~/.zfunc/_longwatch
  npm run -s longwatch -- completion --json`;

/** Returns the line with which a shell knows a checkout's program as `longwatch`, unless it knows one already. */
export function defineCommand(shell: string, folder: string): string {
  const isFish = shell === "fish";
  const quoted = `'${folder.replaceAll("'", isFish ? "\\'" : "'\\''")}'`;
  const call = `npm --silent --prefix ${quoted} run longwatch --`;
  return isFish
    ? `type -q longwatch; or function longwatch; ${call} $argv; end\n`
    : `command -v longwatch >/dev/null || longwatch() { ${call} "$@"; }\n`;
}

/** `longwatch completion`: prints the script with which a shell completes commands and options of this program. */
export function completionCommand(io: StoreIo = createProcessIo()): Command {
  const completion = storeCommand("completion", SUMMARIES.completion, HELP, io)
    .addArgument(new Argument("[shell]", "the shell").choices(SHELLS))
    .option("--json", "print every command with its words and options as JSON; needs no shell")
    .action(
      storeAction<{ json?: true }>(io, async ({ json }, read, [shell = ""]) => {
        const toScript = SCRIPTS[shell];
        if (toScript === undefined && json !== true)
          read.mistakes.push(`a shell must be given: ${SHELLS.join(", ")}`);
        read.finish();
        const nodes = listNodes(rootOf(completion));
        if (json === true) await writeJson(io.stdout, nodes);
        else
          await writeOut(
            io.stdout,
            `${isInstalled() ? "" : defineCommand(shell, ROOT)}${toScript?.(nodes) ?? ""}`,
          );
      }),
    );
  return completion;
}

function rootOf(command: Command): Command {
  return command.parent === null ? command : rootOf(command.parent);
}
