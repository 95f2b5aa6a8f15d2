import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";

const root = path.join(import.meta.dirname, "..", "..");
const LOCK = "{}";
const read = (file: string) => readFileSync(file, "utf8");

/** A checkout with an installed Node, a stand-in for the service, and an npm that leaves a mark instead of installing. */
function makeCheckout() {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-bootstrap-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const at = (...parts: string[]) => path.join(folder, ...parts);
  for (const name of ["src/app", "bin", "node_modules/.bin"]) mkdirSync(at(name), { recursive: true });
  for (const name of ["bootstrap.mjs", "app/launch.json"]) {
    copyFileSync(path.join(root, "src", name), at("src", name));
  }
  writeFileSync(at("package.json"), '{"type":"module"}');
  writeFileSync(at("package-lock.json"), LOCK);
  writeFileSync(
    at("src", "main.ts"),
    `import ${JSON.stringify(pathToFileURL(path.join(import.meta.dirname, "service.ts")).href)};\n`,
  );
  symlinkSync(process.execPath, at("node_modules", ".bin", "node"));
  writeFileSync(at("node_modules", ".package-lock.json"), "{}");
  writeFileSync(at("bin", "npm"), `#!/bin/sh\necho "$1" > '${at("npm-ran")}'\n`);
  chmodSync(at("bin", "npm"), 0o755);
  return { at, hasInstalled: () => existsSync(at("npm-ran")), npmCommand: () => read(at("npm-ran")) };
}

function run(
  checkout: ReturnType<typeof makeCheckout>,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  mode = "start",
) {
  const starter = spawn(process.execPath, [checkout.at("src", "bootstrap.mjs"), mode, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    // A process group of its own, as in a terminal.
    detached: true,
    env: { ...env, PATH: `${checkout.at("bin")}:${process.env["PATH"]}` },
  });
  onTestFinished(() => killGroup(starter));
  let printed = "";
  starter.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  const ended = once(starter.stdout, "end");
  const exited = once(starter, "exit").then(([code, signal]) => (code ?? signal) as number | string);
  const ready = () => vi.waitFor(() => expect(printed).toMatch(/^ready \d+/m), { timeout: 20_000 });
  return { starter, ready, exited, ended, printed: () => printed };
}

function killGroup(starter: ChildProcess): void {
  try {
    process.kill(-(starter.pid ?? 0), "SIGKILL");
  } catch {
    // Nothing of it is left.
  }
}

test("hands its arguments to the service and ends with its exit code", async () => {
  const { exited, printed } = run(makeCheckout(), ["--end", "--port", "0"]);

  expect(await exited).toBe(0);
  expect(printed()).toMatch(/^ready \d+ start --end --port 0$/m);
});

test("a service that is killed ends the starter with the shell's code for the signal", async () => {
  const { exited } = run(makeCheckout(), ["--crash"]);

  expect(await exited).toBe(137);
});

test("SIGTERM to the starter alone stops the service once, however often it comes, and waits for it", async () => {
  const { starter, ready, exited, printed } = run(makeCheckout());
  await ready();
  starter.kill("SIGTERM");
  starter.kill("SIGINT");
  starter.kill("SIGTERM");

  expect(await exited).toBe(7);
  expect(printed().match(/^(stop|signal).*$/gm)).toEqual(["stop: the starter was asked to stop"]);
});

test("SIGHUP asks the service to read its configuration file again, and without one stops it", async () => {
  const reloading = run(makeCheckout(), [], { LONGWATCH_CONFIG: "longwatch.yaml" });
  await reloading.ready();
  reloading.starter.kill("SIGHUP");
  await vi.waitFor(() => expect(reloading.printed()).toContain("reload"), { timeout: 20_000 });
  reloading.starter.kill("SIGTERM");
  expect(await reloading.exited).toBe(7);
  // No signal: it would end a service that is still loading.
  expect(reloading.printed().match(/^(stop|signal|reload).*$/gm)).toEqual([
    "reload",
    "stop: the starter was asked to stop",
  ]);

  const bare = run(makeCheckout());
  await bare.ready();
  bare.starter.kill("SIGHUP");
  expect(await bare.exited).toBe(7);
  expect(bare.printed().match(/^(stop|signal).*$/gm)).toEqual(["stop: the starter was asked to stop"]);
});

test("Ctrl-C reaches the service as one signal of its own, and the starter waits for it", async () => {
  const { starter, ready, exited, printed } = run(makeCheckout());
  await ready();
  process.kill(-(starter.pid ?? 0), "SIGINT");

  expect(await exited).toBe(7);
  expect(printed().match(/^signal.*$/gm)).toEqual(["signal SIGINT"]);
});

test("kill -9 of the starter stops the service", async () => {
  const { starter, ready, ended, printed } = run(makeCheckout());
  await ready();
  starter.kill("SIGKILL");
  // The pipe ends when the last process that could write to it has.
  await ended;

  expect(printed()).toContain("stop: the starter is gone");
});

test("a current installation is not installed again, also when a checkout made the lock file look newer", async () => {
  const checkout = makeCheckout();
  expect(await run(checkout, ["--end"]).exited).toBe(0);
  expect(checkout.hasInstalled()).toBe(false);

  utimesSync(checkout.at("package-lock.json"), new Date(), new Date(Date.now() + 60_000));
  writeFileSync(
    checkout.at("node_modules", ".installed-lock"),
    createHash("sha256").update(LOCK).digest("hex"),
  );
  expect(await run(checkout, ["--end"]).exited).toBe(0);
  expect(checkout.hasInstalled()).toBe(false);
});

test("a stale installation is brought up to date once, by npm ci, and the size and the time are printed first", async () => {
  const checkout = makeCheckout();
  utimesSync(checkout.at("package-lock.json"), new Date(), new Date(Date.now() + 60_000));
  const { exited, ended, printed } = run(checkout, ["--end"]);
  expect(await exited).toBe(0);
  await ended;
  expect(checkout.npmCommand()).toBe("ci\n");
  expect(printed()).toMatch(/^Installing .*\nThis needs \S+ GB of disk and a minute or more.*\nready /);

  rmSync(checkout.at("npm-ran"));
  expect(await run(checkout, ["--end"]).exited).toBe(0);
  expect(checkout.hasInstalled()).toBe(false);
});

/** A checkout whose lock file has a package for this machine, which npm installs at the given attempt. */
function makeIncomplete(attempt: number) {
  const checkout = makeCheckout();
  const [here, other] = [
    { os: [process.platform], cpu: [process.arch] },
    { os: ["aix"], cpu: ["ppc64"] },
  ];
  const packages = { "node_modules/@engine/here": here, "node_modules/@engine/other": other };
  writeFileSync(checkout.at("package-lock.json"), JSON.stringify({ packages }));
  writeFileSync(
    checkout.at("bin", "npm"),
    `#!/bin/sh
echo "$1" >> '${checkout.at("npm-ran")}'
touch '${checkout.at("node_modules", ".package-lock.json")}'
[ "$(wc -l < '${checkout.at("npm-ran")}')" -lt ${attempt} ] || mkdir -p '${checkout.at("node_modules", "@engine", "here")}'
`,
  );
  return checkout;
}

test("a package for this machine that npm could not download is downloaded by another attempt", async () => {
  const checkout = makeIncomplete(2);
  expect(await run(checkout, ["--end"]).exited).toBe(0);
  expect(checkout.npmCommand()).toBe("ci\nci\n");
});

test("an installation that stays incomplete starts nothing, and the next start tries again", async () => {
  const checkout = makeIncomplete(5);
  const { exited, ended, printed } = run(checkout, ["--end"]);
  expect(await exited).toBe(1);
  await ended;
  expect(printed()).not.toContain("ready");
  expect(checkout.npmCommand()).toBe("ci\n".repeat(3));
  expect(await run(checkout, ["--end"]).exited).toBe(0);
  expect(checkout.npmCommand()).toBe("ci\n".repeat(5));
});

test("a command gets its arguments, installs what is missing without a word on its output, and ends with its code", async () => {
  const checkout = makeCheckout();
  writeFileSync(checkout.at("bin", "npm"), `#!/bin/sh\necho noise\ntouch '${checkout.at("npm-ran")}'\n`);
  utimesSync(checkout.at("package-lock.json"), new Date(), new Date(Date.now() + 60_000));
  const { exited, ended, printed } = run(checkout, ["alerts", "list", "--end"], {}, "longwatch");
  expect(await exited).toBe(0);
  await ended;
  expect(checkout.hasInstalled()).toBe(true);
  expect(printed()).toMatch(/^ready \d+ alerts list --end\n$/);
});

test("Ctrl-C reaches a command as one signal, and the terminal is given back when it has ended", async () => {
  const { starter, ready, exited, printed } = run(makeCheckout(), ["backfill"], {}, "longwatch");
  await ready();
  process.kill(-(starter.pid ?? 0), "SIGINT");
  await vi.waitFor(() => expect(printed()).toContain("signal SIGINT"), { timeout: 20_000 });
  expect(printed().split("signal SIGINT")).toHaveLength(2);
  expect(starter.exitCode).toBeNull();
  process.kill(-(starter.pid ?? 0), "SIGKILL");
  await exited;
});

test("SIGTERM to the starter of a command is passed on", async () => {
  const { starter, ready, printed } = run(makeCheckout(), ["emulator"], {}, "longwatch");
  await ready();
  starter.kill("SIGTERM");
  await vi.waitFor(() => expect(printed()).toContain("signal SIGTERM"), { timeout: 20_000 });
});

test("an installation for production, on a Node that is new enough, is left as it is", async () => {
  const checkout = makeCheckout();
  rmSync(checkout.at("node_modules", ".bin", "node"));
  mkdirSync(checkout.at("node_modules", "commander"));
  utimesSync(checkout.at("package-lock.json"), new Date(), new Date(Date.now() + 60_000));
  const { exited, ended, printed } = run(checkout, ["status", "--end"], {}, "longwatch");
  expect(await exited).toBe(0);
  await ended;
  expect(printed()).toMatch(/^ready \d+ status --end\n$/);
  expect(checkout.hasInstalled()).toBe(false);
});

/** A checkout in which each tool of the gate is a program that prints its name, and `failing` ends with exit code 3. */
function makeGate(failing: string) {
  const checkout = makeCheckout();
  for (const tool of ["tsc", "oxlint", "biome", "knip", "vitest"]) {
    const program = checkout.at("node_modules", ".bin", tool);
    writeFileSync(program, `#!/bin/sh\necho "${tool} ran"\nexit ${tool === failing ? 3 : 0}\n`, {
      mode: 0o755,
    });
  }
  return run(checkout, [], {}, "gate");
}

test("the gate prints every check under its command, then runs the tests and ends with their exit code", async () => {
  const { exited, ended, printed } = makeGate("vitest");

  expect(await exited).toBe(3);
  await ended;
  for (const tool of ["tsc --noEmit --singleThreaded", "oxlint .*", "biome check", "knip"])
    expect(printed()).toMatch(new RegExp(`^== ${tool}\n${tool.split(" ")[0]} ran$`, "m"));
  expect(printed()).toMatch(/\n== vitest run\nvitest ran\n$/);
});

test("a failed check ends the gate with its exit code and without a test, after the other checks have run", async () => {
  const { exited, ended, printed } = makeGate("oxlint");

  expect(await exited).toBe(3);
  await ended;
  expect(
    printed()
      .match(/\w+ ran/g)
      ?.sort(),
  ).toEqual(["biome ran", "knip ran", "oxlint ran", "tsc ran", "tsc ran"]);
});
