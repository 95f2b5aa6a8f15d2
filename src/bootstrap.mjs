/**
 * What `npm test` runs, on whatever Node a machine has: installs the locked dependencies where they are missing
 * or stale, then goes on under the pinned Node that came with them. Plain JavaScript for that reason.
 * Usage: node src/bootstrap.mjs gate
 */
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const bin = path.join(root, "node_modules", ".bin");

const print = (text) => process.stdout.write(`${text}\n`);
const complain = (text) => process.stderr.write(`${text}\n`);

const GATE = [
  ["tsc", "--noEmit"],
  ["oxlint", "--type-aware", "--deny-warnings", "src", "db", "test"],
  ["biome", "check"],
  ["knip"],
  ["vitest", "run"],
];

function isInstalled() {
  const installed = path.join(root, "node_modules", ".package-lock.json");
  if (!existsSync(installed) || !existsSync(path.join(bin, "node"))) return false;
  return statSync(installed).mtimeMs >= statSync(path.join(root, "package-lock.json")).mtimeMs;
}

function run(command, args) {
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH}` };
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: "inherit", env });
  if (error) complain(`${command} did not start: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

if (!isInstalled()) {
  print("Installing dependencies ...");
  // Not `npm ci`: it refuses a lock file that lacks other platforms' optional binaries, which not every registry holds.
  run("npm", ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"]);
}
switch (process.argv[2]) {
  case "gate":
    for (const [tool, ...args] of GATE) {
      print(`\n== ${[tool, ...args].join(" ")}`);
      run(path.join(bin, tool), args);
    }
    break;
  default:
    complain(`unknown argument ${JSON.stringify(process.argv[2])}: must be gate`);
    process.exit(2);
}
