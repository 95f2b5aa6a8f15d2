import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import {
  defineCommand,
  listNodes,
  toBashScript,
  toFishScript,
  toZshScript,
} from "#faces/cli/completion/completion.ts";
import { loadProgram } from "#faces/cli/program.ts";
import { findProgram } from "../../support/find-program.ts";

const NODES = listNodes(await loadProgram());
const bash = findProgram("bash");

/** What bash offers behind each of these lines, with the printed script loaded. */
async function completeInBash(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const asks = lines.map(
    (words) =>
      `COMP_WORDS=(longwatch ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _longwatch; echo "\${COMPREPLY[*]}"`,
  );
  const script = [toBashScript(NODES), "complete -p longwatch", ...asks].join("\n");
  const { stdout, stderr } = await promisify(execFile)(bash ?? "", ["--norc", "-eu", "-c", script]);
  expect(stderr).toBe("");
  const [registered = "", ...answers] = stdout.trimEnd().split("\n");
  expect(registered).toContain("-F _longwatch longwatch");
  return answers.map((answer) => answer.split(" ").filter((word) => word !== ""));
}

test.skipIf(bash === null)(
  `bash completes commands, options and a fixed argument where each may be typed${bash === null ? " (skipped: bash is not on PATH)" : ""}`,
  async () => {
    const answers = await completeInBash([
      ["stat"],
      ["alerts", "re"],
      ["alerts", "list", "--z"],
      ["edge", "--timeout", "5", "events", "sea"],
      ["completion", ""],
      ["migrate", ""],
      ["alerts", "list", "--zone", ""],
      ["nonsense*", "stat"],
    ]);
    expect(answers).toEqual([
      ["status"],
      ["resolve"],
      ["--zone"],
      ["search"],
      ["bash", "zsh", "fish"],
      ["--json", "--help"],
      [],
      ["status"],
    ]);
  },
);

test.skipIf(bash === null)(
  `in a checkout the script defines the command, which passes arguments on${bash === null ? " (skipped: bash is not on PATH)" : ""}`,
  async () => {
    const folder = "/it's a folder";
    const npm = "npm() { printf '<%s>' \"$@\"; }";
    const script = [npm, defineCommand("bash", folder), "longwatch alerts show '1 2'"].join("\n");
    const { stdout } = await promisify(execFile)(bash ?? "", ["--norc", "-eu", "-c", script]);
    expect(stdout).toBe(`<--silent><--prefix><${folder}><run><longwatch><--><alerts><show><1 2>`);
    const known = ["longwatch() { echo known; }", defineCommand("bash", folder), "longwatch"].join("\n");
    const { stdout: kept } = await promisify(execFile)(bash ?? "", ["--norc", "-eu", "-c", known]);
    expect(kept).toBe("known\n");
  },
);

const zsh = findProgram("zsh");
const fish = findProgram("fish");
const skipped = (shell: string, found: string | null) =>
  found === null ? ` (skipped: ${shell} is not on PATH)` : "";

/** Loads the script as ~/.zshrc does, and prints instead of offering what `_describe` gets. */
async function completeInZsh(lines: readonly (readonly string[])[]): Promise<string[][]> {
  const asks = lines.map(
    (typed) =>
      `words=(longwatch ${typed.map((word) => `'${word}'`).join(" ")}); CURRENT=${typed.length + 1}; PREFIX='${typed.at(-1)}'; _longwatch; print -- "\${offered[*]}"; offered=()`,
  );
  const script = [
    "autoload -Uz compinit; compinit -D -u; offered=()",
    toZshScript(NODES),
    '[[ ${_comps[longwatch]} == _longwatch ]] || print "not registered"',
    '_describe() { shift $(( $# - 1 )); offered=("${(@)${(@P)1}%%:*}"); offered=("${(@M)offered:#$PREFIX*}") }',
    "_files() { offered=() }",
    ...asks,
  ].join("\n");
  const { stdout, stderr } = await promisify(execFile)(zsh ?? "", ["-f", "-c", script]);
  expect(stderr).toBe("");
  return stdout
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.split(" ").filter((word) => word !== ""));
}

async function completeInFish(lines: readonly string[]): Promise<string[][]> {
  const asks = lines.map(
    (line) => `set found (complete --do-complete '${line}' | string split -f1 \\t); echo $found`,
  );
  const { stdout, stderr } = await promisify(execFile)(fish ?? "", [
    "--no-config",
    "-c",
    [toFishScript(NODES), ...asks].join("\n"),
  ]);
  expect(stderr).toBe("");
  return stdout
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => line.split(" ").filter((word) => word !== ""));
}

test.skipIf(zsh === null)(
  `zsh completes commands, options and a fixed argument where each may be typed${skipped("zsh", zsh)}`,
  async () => {
    const typed = [
      ["stat"],
      ["alerts", "re"],
      ["alerts", "list", "--z"],
      ["edge", "--timeout", "5", "events", "sea"],
    ];
    const more = [
      ["completion", ""],
      ["alerts", "list", "--zone", ""],
    ];
    expect(await completeInZsh([...typed, ...more])).toEqual([
      ["status"],
      ["resolve"],
      ["--zone"],
      ["search"],
      ["bash", "zsh", "fish"],
      [],
    ]);
  },
);

test.skipIf(fish === null)(
  `fish completes commands, options and a fixed argument where each may be typed${skipped("fish", fish)}`,
  async () => {
    const lines = ["stat", "alerts re", "alerts list --z", "edge --timeout 5 events sea", "completion "];
    expect(await completeInFish(lines.map((line) => `longwatch ${line}`))).toEqual([
      ["status"],
      ["resolve"],
      ["--zone"],
      ["search"],
      ["bash", "fish", "zsh"],
    ]);
  },
);

test("the scripts of all shells know each command that the program has, and each option", () => {
  const paths = NODES.map(({ path }) => path);
  expect(paths).toEqual(expect.arrayContaining(["", "alerts list", "edge events export"]));
  for (const script of [toBashScript(NODES), toZshScript(NODES), toFishScript(NODES)])
    for (const { path, options } of NODES) {
      expect(script).toContain(path);
      for (const { name } of options) expect(script).toContain(name.replace(/^--/, ""));
    }
});

test("a quote in a description stays inside its text", () => {
  const node = { name: "x", description: String.raw`it's \ $(reboot)` };
  const nodes = [{ path: "", words: [node], options: [] }];
  expect(toZshScript(nodes)).toContain(String.raw`'x:it'\''s \ $(reboot)'`);
  expect(toFishScript(nodes)).toContain(String.raw`-d 'it\'s \\ $(reboot)'`);
});
