/**
 * The program behind `npm start`, `npm test` and `npm run longwatch`. It runs on the Node of the machine, installs the locked
 * dependencies if they are missing or stale, and then runs the pinned Node. It is plain JavaScript, because the machine's
 * Node may not run TypeScript.
 * Usage: node src/bootstrap.mjs gate
 *        node src/bootstrap.mjs start [arguments of `longwatch start`]
 *        node src/bootstrap.mjs longwatch [command] [its arguments]
 *        node src/bootstrap.mjs build-console
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { availableParallelism, constants } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const bin = path.join(root, "node_modules", ".bin");
const lockFile = path.join(root, "package-lock.json");
/** The hash of the installed lock file. Its time is not enough, because a checkout changes it. */
const stampFile = path.join(root, "node_modules", ".installed-lock");

/**
 * Options that keep the memory of the service small without making it slower. Pages of a megabyte become garbage quickly, so
 * V8's default young and old generation and an allocator that keeps freed memory would only use more. The compile cache
 * keeps stripped types of an earlier start, so that no thread loads the type stripper.
 */
const launch = JSON.parse(readFileSync(path.join(root, "src", "app", "launch.json"), "utf8"));

const print = (text) => process.stdout.write(`${text}\n`);
const complain = (text) => process.stderr.write(`${text}\n`);

const INSTALL_ATTEMPTS = 3;

/** Checks of the gate, the longest first. As many run at the same time as there are cores, each on one. */
const CHECKS = [
  ["oxlint", "--type-aware", "--deny-warnings", "src", "db", "jobs", "test"],
  ["tsc", "--noEmit", "--singleThreaded"],
  ["tsc", "--noEmit", "--singleThreaded", "--project", "src/faces/console"],
  ["knip"],
  ["biome", "check"],
];

/**
 * The compiler and the linter with types are Go programs. Several threads check the same types more than once, and Go's
 * collector costs more than it frees in a program that ends after seconds.
 */
const CHECK_ENVIRONMENT = { GOMAXPROCS: "1", GOGC: "400" };

const digest = () => createHash("sha256").update(readFileSync(lockFile)).digest("hex");

/** Returns whether only the production dependencies are installed, without the pinned Node, on a Node that runs TypeScript. */
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
  if (!existsSync(installed) || statSync(installed).mtimeMs < statSync(lockFile).mtimeMs) return false;
  return findMissing().length === 0;
}

/**
 * Returns the packages for this machine that are not installed. Their parents name them as optional, because each machine needs
 * others, so npm ends well if the download of one has failed. Without DuckDB's, nothing reads the archive.
 */
function findMissing() {
  const { packages = {} } = JSON.parse(readFileSync(lockFile, "utf8"));
  const libraries = [process.report.getReport().header.glibcVersionRuntime ? "glibc" : "musl"];
  return Object.entries(packages).flatMap(([name, { os, cpu, libc = libraries }]) => {
    const isHere =
      os?.includes(process.platform) && cpu?.includes(process.arch) && libc.includes(libraries[0]);
    return isHere && !existsSync(path.join(root, name)) ? [name.split("node_modules/").at(-1)] : [];
  });
}

function install() {
  // A program may read the output of a command, so the progress goes to stderr.
  const output = process.argv[2] === "longwatch" ? process.stderr : process.stdout;
  output.write("Installing the locked packages, Node 24 and Postgres into node_modules ...\n");
  output.write(
    "This needs 0.8 GB of disk and a minute or more, once and after each update of the packages.\n",
  );
  for (let attempt = 1; ; attempt += 1) {
    run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], ["inherit", output.fd, "inherit"]);
    const missing = findMissing();
    if (missing.length === 0) break;
    complain(`npm could not download ${missing.join(", ")}.`);
    if (attempt === INSTALL_ATTEMPTS) {
      complain("Check the connection to the registry of npm, then run the command again.");
      process.exit(1);
    }
  }
  writeFileSync(stampFile, digest());
}

const environment = () => ({ ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH}` });

function run(command, args, stdio = "inherit") {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio, env: environment() });
  if (error) complain(`${command} did not start: ${error.message}`);
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs the checks and then the tests. The exit code is that of the first failure in the order of the list. */
async function runGate() {
  const codes = CHECKS.map(() => 0);
  const waiting = CHECKS.entries();
  // The lanes share the iterator, so each takes the next check that none has.
  const lanes = Array.from({ length: availableParallelism() }, async () => {
    for (const [index, check] of waiting) codes[index] = await runCheck(check);
  });
  await Promise.all(lanes);
  const failed = codes.find((code) => code !== 0);
  if (failed !== undefined) process.exit(failed);
  print("\n== vitest run");
  run(path.join(bin, "vitest"), ["run"]);
}

/** Runs a check and prints its output when it ends, so that the outputs do not mix. Returns its exit code. */
function runCheck([tool, ...args]) {
  const colour = process.stdout.isTTY ? { FORCE_COLOR: "1" } : {};
  const env = { ...CHECK_ENVIRONMENT, ...colour, ...environment() };
  const child = spawn(path.join(bin, tool), args, { cwd: root, stdio: ["ignore", "pipe", "pipe"], env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  child.on("error", (error) => {
    output += `${tool} did not start: ${error.message}`;
  });
  return new Promise((resolve) => {
    child.on("close", (code) => {
      print(`\n== ${[tool, ...args].join(" ")}\n${output.trimEnd()}`);
      resolve(code !== null && code >= 0 ? code : 1);
    });
  });
}

const consoleSources = path.join(root, "src", "faces", "console");
const builtConsole = path.join(root, "dist", "console");
/** The hash of the sources that the built console was made of. */
const builtStamp = path.join(builtConsole, ".sources");

/** Returns the hash of all that the bundle is made of: the console, packages, and the addresses of operations in other folders. */
function digestConsole() {
  const hash = createHash("sha256").update(digest());
  const files = readdirSync(path.join(root, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    .sort();
  for (const file of files) {
    const text = readFileSync(file);
    if (!file.startsWith(consoleSources) && !/\bdefine(?:Query|Change)\(/.test(text.toString())) continue;
    hash.update(path.relative(root, file)).update("\0").update(text);
  }
  return hash.digest("hex");
}

/** Builds the console if its sources have changed. A failure does not stop the service, which works without a console. */
function buildConsoleIfStale() {
  const vite = path.join(bin, "vite");
  if (!existsSync(path.join(consoleSources, "vite.config.ts")) || !existsSync(vite)) return;
  if (existsSync(builtStamp) && readFileSync(builtStamp, "utf8") === digestConsole()) return;
  process.stderr.write("Building the console ...\n");
  const { status } = buildConsole(["ignore", "ignore", "inherit"]);
  if (status !== 0) complain("The console was not built. `npm run build:console` shows why.");
}

function buildConsole(stdio) {
  const sources = digestConsole();
  const built = spawnSync(node, [path.join(root, "src", "build-console.mjs")], {
    cwd: root,
    stdio,
    env: environment(),
  });
  if (built.status === 0) writeFileSync(builtStamp, sources);
  return built;
}

/**
 * Starts the service in the same process group, so that Ctrl-C and kill -9 of the group reach the service too. For a signal
 * to this process alone (npm forwards SIGTERM, and SIGINT a second time), "stop" is sent over the channel. If this process
 * is killed, the channel closes. For a SIGHUP that means to reload, "reload" is sent. "stop" is sent once, because a second signal
 * makes the service stop at once.
 */
function start(args) {
  const child = spawnMain(["start", ...args], ["inherit", "inherit", "inherit", "ipc"]);
  let isStopSent = false;
  const stop = () => {
    if (!isStopSent && child.connected) child.send("stop", () => {});
    isStopSent = true;
  };
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, stop);
  // With a configuration file, SIGHUP makes the service read it again. Without one, it means that the terminal is gone.
  // A message waits for the service to listen; a signal would end a service that is still loading.
  const reload = () => child.connected && child.send("reload", () => {});
  process.on("SIGHUP", () => (process.env.LONGWATCH_CONFIG ? reload() : stop()));
  // npm runs this in a shell, which does not forward SIGTERM, and npm itself may be killed.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event) setInterval(() => process.ppid !== parent && stop(), 1_000).unref();
}

/** Runs one command in the terminal's process group. Ctrl-C reaches the command too, and this process waits for it. */
function runCommand(args) {
  const child = spawnMain(args, "inherit");
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
}

/** Runs the service's program with the pinned Node. This process ends with it and with its exit code. */
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

if (!isInstalled()) install();
switch (process.argv[2]) {
  case "gate":
    await runGate();
    break;
  case "build-console":
    process.exitCode = buildConsole("inherit").status ?? 1;
    break;
  case "start":
    buildConsoleIfStale();
    start(process.argv.slice(3));
    break;
  case "longwatch":
    runCommand(process.argv.slice(3));
    break;
  default:
    complain(
      `unknown argument ${JSON.stringify(process.argv[2])}: must be gate, start, longwatch or build-console`,
    );
    process.exit(2);
}
