import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { findFreePort } from "../support/free-port.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const SMALL = ["--history-hours", "0.2", "--no-state"];

function ended(child: ChildProcess): ChildProcess {
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Runs to its end; for commands that do not start a server. */
async function run(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = ended(
    spawn(process.execPath, [MAIN, "emulator", ...args], { stdio: ["ignore", "pipe", "pipe"] }),
  );
  const read = async (stream: NodeJS.ReadableStream | null) => {
    let text = "";
    for await (const chunk of stream ?? []) text += String(chunk);
    return text;
  };
  const [stdout, stderr, [code]] = await Promise.all([
    read(child.stdout),
    read(child.stderr),
    once(child, "close"),
  ]);
  return { code: code as number, stdout, stderr };
}

async function start(
  args: readonly string[],
  cwd?: string,
): Promise<{ child: ChildProcess; url: string; output: string }> {
  const child = ended(
    spawn(process.execPath, [MAIN, "emulator", ...args], {
      stdio: ["ignore", "pipe", "inherit"],
      ...(cwd === undefined ? {} : { cwd }),
    }),
  );
  let output = "";
  child.stdout?.on("data", (chunk) => (output += String(chunk)));
  await expect.poll(() => output).toContain("/_emulator");
  return { child, url: /http:\S+(?=\n)/.exec(output)?.[0] ?? "", output };
}

test("all mistakes on the command line are listed at once, with exit code 2 and nothing started", async () => {
  const { code, stderr, stdout } = await run([
    "--port",
    "99999",
    "--zones",
    "101,101",
    "--events-per-second",
    "0",
    "--order",
    "random",
    "--frobnicate",
    "--attack",
    "zone=x,rule=942100,start=soon",
    "--fault",
    "gremlins",
    "--switch",
    "lastToken=maybe",
  ]);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  for (const sign of [
    '"99999"',
    '"101,101"',
    '--events-per-second "0"',
    '"random"',
    "--frobnicate",
    '"soon"',
    'zone "x"',
    "gremlins",
    "lastToken",
  ]) {
    expect(stderr).toContain(sign);
  }
});

test("an attack on a zone that is not served, and an option without its value, are mistakes too", async () => {
  expect(await run([...SMALL, "--attack", "zone=9,rule=942100"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("zone 9 is not one of 101, 102"),
  });
  expect(await run(["--seed"])).toMatchObject({ code: 2 });
});

test("help shows every flag with examples", async () => {
  const { code, stdout } = await run(["--help"]);
  expect(code).toBe(0);
  for (const flag of [
    "--port",
    "--zones",
    "--seed",
    "--events-per-second",
    "--history-hours",
    "--page-size",
    "--order",
    "--attack",
    "--fault",
    "--switch",
    "--state",
    "--no-state",
  ]) {
    expect(stdout).toContain(flag);
  }
  expect(stdout).toContain("Examples:");
});

test("the emulator keeps serving when nobody reads its output", async () => {
  const port = await findFreePort();
  const child = ended(
    spawn(process.execPath, [MAIN, "emulator", ...SMALL, "--port", String(port)], {
      stdio: ["ignore", "pipe", "inherit"],
    }),
  );
  child.stdout?.destroy();
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/_emulator`).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(ask).toBe(200);
  expect(child.exitCode).toBeNull();
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "it prints its address and key, serves, and ends on %s",
  async (signal) => {
    const { child, url, output } = await start([
      ...SMALL,
      "--access-key",
      "k",
      "--page-size",
      "7",
      "--switch",
      "lastToken=null",
      "--switch",
      "listFeatures=waf",
      "--fault",
      "latency,ms=1",
    ]);
    expect(output).toContain("access key  k");
    expect((await fetch(`${url}/apikey`, { headers: { AccessKey: "k" } })).status).toBe(200);
    const body = (await (await fetch(`${url}/_emulator`)).json()) as {
      faults: { active: unknown[]; switches: unknown };
    };
    expect(body.faults).toMatchObject({
      active: [{ kind: "latency", ms: 1 }],
      switches: { pageSize: 7, lastToken: "null", listFeatures: "waf" },
    });
    const exit = once(child, "exit");
    child.kill(signal);
    expect(await exit).toEqual([0, null]);
  },
);

test("an attack that began before the start is emulated from its beginning on", async () => {
  const { child, url } = await start([
    ...SMALL,
    "--events-per-second",
    "0.01",
    "--attack",
    "kind=misfire-form,zone=102,start=-7h,rate=4/m",
  ]);
  const text = await (await fetch(`${url}/_emulator/events/102`)).text();
  const lines = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { timestamp: number; ruleId: string });
  const posts = lines.filter(({ ruleId }) => ruleId === "942440");
  expect(posts.length).toBeGreaterThan(1_500);
  child.kill("SIGTERM");
});

test("its state file is named after the seed unless a path or --no-state is given", async () => {
  const folder = mkdtempSync(join(tmpdir(), "emulator-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const { child } = await start(
    ["--history-hours", "0", "--seed", "demo/1", "--attack", "zone=101,rule=942100,start=+1h"],
    folder,
  );
  const state = JSON.parse(readFileSync(join(folder, ".longwatch", "emulator-demo_1.json"), "utf8")) as {
    seed: string;
    attacks: unknown[];
  };
  expect(state).toMatchObject({ seed: "demo/1", attacks: [{ zone: 101, rule: "942100" }] });
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
});

test("a forked emulator reports when it is ready, ignores Ctrl-C, and ends with its parent", async () => {
  const child = ended(fork(MAIN, ["emulator", ...SMALL], { stdio: ["ignore", "ignore", "inherit", "ipc"] }));
  const [message] = (await once(child, "message")) as [{ type: string; url: string; accessKey: string }];
  expect(message).toEqual({
    type: "ready",
    url: expect.stringMatching(/^http:/),
    accessKey: "emulator-access-key",
  });
  child.kill("SIGINT");
  expect((await fetch(`${message.url}/_emulator`)).status).toBe(200);
  expect(child.exitCode).toBeNull();
  const exit = once(child, "exit");
  child.disconnect();
  expect(await exit).toEqual([0, null]);
});
