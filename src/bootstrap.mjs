/**
 * What `npm start`, `npm test` and `npm run longwatch` run, on whatever Node a machine has: installs the locked dependencies where they are
 * missing or stale, then goes on under the pinned Node that came with them. Plain JavaScript for that reason.
 * Usage: node src/bootstrap.mjs gate
 *        node src/bootstrap.mjs start [arguments of `longwatch start`]
 *        node src/bootstrap.mjs longwatch [command] [its arguments]
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const bin = path.join(root, "node_modules", ".bin");
const lockFile = path.join(root, "package-lock.json");
/** Which lock file was installed: a checkout changes times, not contents. */
const stampFile = path.join(root, "node_modules", ".installed-lock");

/**
 * How the service is run, for its memory's sake and at no cost in speed: pages of a megabyte are garbage in a moment, so
 * a nursery of 32 MiB, twice, an old generation that may double before it is looked at, and an allocator that keeps what
 * was freed only make it larger. With its types stripped by an earlier start no thread loads the stripper.
 */
const launch = JSON.parse(readFileSync(path.join(root, "src", "app", "launch.json"), "utf8"));

const print = (text) => process.stdout.write(`${text}\n`);
const complain = (text) => process.stderr.write(`${text}\n`);

const GATE = [
  ["tsc", "--noEmit"],
  ["oxlint", "--type-aware", "--deny-warnings", "src", "db", "jobs", "test"],
  ["biome", "check"],
  ["knip"],
  ["vitest", "run"],
];

const digest = () => createHash("sha256").update(readFileSync(lockFile)).digest("hex");

/** Installed without development dependencies, the pinned Node among them, on a Node that runs TypeScript. */
function isProduction() {
  const major = Number(process.versions.node.split(".")[0]);
  return (
    major >= 24 &&
    !existsSync(path.join(bin, "node")) &&
    existsSync(path.join(root, "node_modules", "commander"))
  );
}

const node = isProduction() ? process.execPath : path.join(bin, "node");

function isInstalled() {
  if (isProduction() && process.argv[2] !== "gate") return true;
  if (!existsSync(node)) return false;
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === digest()) return true;
  const installed = path.join(root, "node_modules", ".package-lock.json");
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(lockFile).mtimeMs;
}

const environment = () => ({ ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH}` });

function run(command, args, stdio = "inherit") {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio, env: environment() });
  if (error) complain(`${command} did not start: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

/**
 * The service in the same process group, so that Ctrl-C and kill -9 of the group reach it as they reach this process.
 * Every other end goes over the channel: "stop" for a signal to this process alone (npm passes SIGTERM on, and SIGINT
 * a second time), a broken channel when this process was killed. SIGHUP is passed on where it means to reload. "stop" is said once: a repeated signal would tell the
 * service to hurry.
 */
function start(args) {
  const child = spawnMain(["start", ...args], ["inherit", "inherit", "inherit", "ipc"]);
  let isTold = false;
  const stop = () => {
    if (!isTold && child.connected) child.send("stop", () => {});
    isTold = true;
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, stop);
  // With a configuration file it asks the service to read that again; without, the terminal is gone.
  process.on("SIGHUP", () => (process.env.LONGWATCH_CONFIG ? child.kill("SIGHUP") : stop()));
  // npm runs this in a shell, which does not pass SIGTERM on, and npm itself may be killed.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event) setInterval(() => process.ppid !== parent && stop(), 1_000).unref();
}

/** One command in the terminal's process group: Ctrl-C reaches it as it reaches this process, which waits for it. */
function runCommand(args) {
  const child = spawnMain(args, "inherit");
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
}

/** The service's program under the pinned Node; its end is this process's. */
function spawnMain(args, stdio) {
  const child = spawn(node, [...launch.nodeOptions, path.join(root, "src", "main.ts"), ...args], {
    stdio,
    env: {
      ...launch.environment,
      NODE_COMPILE_CACHE: path.join(root, launch.compileCache),
      ...environment(),
    },
  });
  child.on("error", (error) => {
    complain(`${node} did not start: ${error.message}`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
  return child;
}

if (!isInstalled()) {
  // A command's own output may be read by a program.
  const output = process.argv[2] === "longwatch" ? process.stderr : process.stdout;
  output.write("Installing dependencies ...\n");
  // Not `npm ci`: it refuses a lock file that lacks other platforms' optional binaries, which not every registry holds.
  run(
    "npm",
    ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"],
    ["inherit", output.fd, "inherit"],
  );
  writeFileSync(stampFile, digest());
}
switch (process.argv[2]) {
  case "gate":
    for (const [tool, ...args] of GATE) {
      print(`\n== ${[tool, ...args].join(" ")}`);
      run(path.join(bin, tool), args);
    }
    break;
  case "start":
    start(process.argv.slice(3));
    break;
  case "longwatch":
    runCommand(process.argv.slice(3));
    break;
  default:
    complain(`unknown argument ${JSON.stringify(process.argv[2])}: must be gate, start or longwatch`);
    process.exit(2);
}
