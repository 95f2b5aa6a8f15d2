import { readFileSync } from "node:fs";
import { expect, onTestFinished, test, vi } from "vitest";
import { type EmulatorProcess, startEmulatorProcess } from "#app/open-platform.ts";
import { listProcesses } from "../support/list-processes.ts";

const SMALL = ["--zones", "101", "--history-hours", "1", "--events-per-second", "0.01", "--no-state"];

/** Emulators that this process has started and that still run. */
function children(): number[] {
  return listProcesses().flatMap(({ pid, parent, command }) =>
    parent === process.pid && command.includes("main.ts emulator") ? [pid] : [],
  );
}

async function start(onExit: () => void): Promise<EmulatorProcess> {
  const emulator = await startEmulatorProcess(SMALL, onExit);
  onTestFinished(() => emulator.stop());
  return emulator;
}

test("it answers once it is started, and is gone once it is stopped, without a word", async () => {
  const onExit = vi.fn<() => void>();
  const emulator = await start(onExit);
  const described = await fetch(`${emulator.url}/_emulator`);
  expect(await described.json()).toMatchObject({ accessKey: emulator.accessKey.reveal() });
  expect(children()).toHaveLength(1);
  await emulator.stop();
  await emulator.stop();
  expect(children()).toEqual([]);
  expect(onExit).not.toHaveBeenCalled();
});

test("S14: the emulator's process gets none of the service's settings", async () => {
  vi.stubEnv("EDGE_API_KEY", "canary");
  onTestFinished(() => void vi.unstubAllEnvs());
  await start(() => undefined);
  const [pid] = children();
  const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
  expect(environment).toContain("PATH=");
  expect(environment).not.toContain("canary");
});

test("one that is killed is reported, once, and stopping it afterwards is nothing special", async () => {
  const onExit = vi.fn<() => void>();
  const emulator = await start(onExit);
  for (const pid of children()) process.kill(pid, "SIGKILL");
  await vi.waitFor(() => expect(onExit).toHaveBeenCalledTimes(1));
  await emulator.stop();
  expect(onExit).toHaveBeenCalledTimes(1);
});

test("one that is not wanted any more while it draws its history is ended, and nothing is left running", async () => {
  const stopping = new AbortController();
  const flags = ["--zones", "101,102", "--no-state"];
  const starting = startEmulatorProcess(flags, vi.fn<() => void>(), stopping.signal).catch(String);
  await vi.waitFor(() => expect(children()).toHaveLength(1));
  stopping.abort(new Error("not wanted"));

  expect(await starting).toBe("Error: not wanted");
  expect(children()).toEqual([]);
  const late = startEmulatorProcess(SMALL, vi.fn<() => void>(), stopping.signal);
  await expect(late).rejects.toThrow("not wanted");
  expect(children()).toEqual([]);
});

test("one that ends before it is ready is an error, and nothing is left running", async () => {
  const onExit = vi.fn<() => void>();
  await expect(startEmulatorProcess(["--zones", "none"], onExit)).rejects.toThrow(
    "ended before it was ready",
  );
  expect(children()).toEqual([]);
  expect(onExit).not.toHaveBeenCalled();
});

test("one that cannot even be started is an error, and nothing waits for its end", async () => {
  const { execPath } = process;
  onTestFinished(() => {
    process.execPath = execPath;
  });
  process.execPath = "/there/is/no/such/program";
  const onExit = vi.fn<() => void>();
  await expect(startEmulatorProcess(SMALL, onExit)).rejects.toMatchObject({ code: "ENOENT" });
  expect(onExit).not.toHaveBeenCalled();
});
