/** Completion of commands and options in bash, fish and zsh. */
import path from "node:path";
import { Argument, type Command } from "commander";
import { isInstalled } from "#lib/process.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";

/** Works in the bash of macOS (3.2), which has no associative arrays. */
export function toBashScript(nodes: readonly CommandNode[]): string {
  return `# Completion of longwatch for bash.
_longwatch_at() {
  case "$1" in
${nodes.map(toBashCase).join("\n")}
    *) return 1 ;;
  esac
}
_longwatch() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  local at="" words options valued i
  _longwatch_at ""
  for ((i = 1; i < COMP_CWORD; i++)); do
    if _longwatch_at "\${at:+$at }\${COMP_WORDS[i]}"; then at="\${at:+$at }\${COMP_WORDS[i]}"; fi
  done
  COMPREPLY=()
  case " $valued " in *" $before "*) return ;; esac
  if [[ $cur == -* || -z $words ]]; then words="$options"; fi
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _longwatch longwatch
`;
}

/** Names of commands and options have no character that is special in double quotes. */
function toBashCase({ path, words, options }: CommandNode): string {
  const join = (named: readonly { readonly name: string }[]) => named.map(({ name }) => name).join(" ");
  const valued = options.filter(({ takesValue }) => takesValue);
  return `    "${path}") words="${join(words)}" options="${join(options)}" valued="${join(valued)}" ;;`;
}

export function toFishScript(nodes: readonly CommandNode[]): string {
  const paths = nodes.flatMap(({ path }) => (path === "" ? [] : [quoteForFish(path)]));
  return `# Completion of longwatch for fish.
function __longwatch_is
  set -l at ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$at $word")
    if contains -- $next ${paths.join(" ")}
      set at $next
    end
  end
  test "$at" = "$argv[1]"
end
complete -c longwatch -e
${nodes.flatMap(toLines).join("\n")}
`;
}

function toLines({ path, words, options }: CommandNode): string[] {
  const start = `complete -c longwatch -n ${quoteForFish(`__longwatch_is '${path}'`)}`;
  return [
    ...words.map(
      ({ name, description }) => `${start} -f -a ${quoteForFish(name)} -d ${quoteForFish(description)}`,
    ),
    ...options.map(({ name, description, takesValue }) => {
      const kind = takesValue ? " -r" : "";
      return `${start} -l ${name.replace(/^--/, "")}${kind} -d ${quoteForFish(description)}`;
    }),
  ];
}

function quoteForFish(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;
}

/** Can be sourced, or be a file `_longwatch` of the function path. */
export function toZshScript(nodes: readonly CommandNode[]): string {
  return `#compdef longwatch
# Completion of longwatch for zsh.
_longwatch_at() {
  case "$1" in
${nodes.map(toZshCase).join("\n")}
    *) return 1 ;;
  esac
}
_longwatch() {
  local at="" word
  local -a below flags valued
  _longwatch_at ""
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if _longwatch_at "\${at:+$at }$word"; then at="\${at:+$at }$word"; fi
  done
  if (( \${valued[(Ie)\${words[CURRENT-1]}]} )); then
    _files
  elif [[ $PREFIX == -* || \${#below} -eq 0 ]]; then
    _describe -o option flags
  else
    _describe command below
  fi
}
if [[ \${funcstack[1]} == _longwatch ]]; then _longwatch "$@"; else compdef _longwatch longwatch; fi
`;
}

function toZshCase({ path, words, options }: CommandNode): string {
  const describe = (named: readonly { readonly name: string; readonly description: string }[]) =>
    named.map(({ name, description }) => quoteForZsh(`${name}:${description}`)).join(" ");
  const valued = options.filter(({ takesValue }) => takesValue).map(({ name }) => quoteForZsh(name));
  return `    "${path}") below=(${describe(words)}) flags=(${describe(options)}) valued=(${valued.join(" ")}) ;;`;
}

function quoteForZsh(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

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
  const completion = storeCommand("completion", HELP, io)
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

interface Named {
  readonly name: string;
  readonly description: string;
}

/** A command, and the words that may follow it. */
interface CommandNode {
  /** The words after the program's name: `alerts list`. Empty for the program itself. */
  readonly path: string;
  /** Its subcommands, or the values of its argument if these are fixed. */
  readonly words: readonly Named[];
  readonly options: readonly (Named & { readonly takesValue: boolean })[];
}

/** Returns the program and each of its commands, with the words and options that its help shows. */
export function listNodes(command: Command, path = ""): CommandNode[] {
  const help = command.createHelp();
  const visible = help.visibleCommands(command);
  const words = visible.map((one) => ({ name: one.name(), description: one.description() }));
  const values = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
    argChoices.map((name) => ({ name, description })),
  );
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)].flatMap(
    ({ long, short, description, required, optional }) => {
      const name = long ?? short;
      return name === undefined ? [] : [{ name, description, takesValue: required || optional }];
    },
  );
  const below = visible.flatMap((one) => listNodes(one, path === "" ? one.name() : `${path} ${one.name()}`));
  return [{ path, words: [...words, ...values], options }, ...below];
}
