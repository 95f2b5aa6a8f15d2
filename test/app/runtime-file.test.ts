import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readRuntimeFile, removeRuntimeFile, writeRuntimeFile } from "#app/runtime-file.ts";

function makeFolder() {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-runtime-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { folder, file: path.join(folder, "runtime.json") };
}

/** A process other than this one that lives as long as the test: the one that started it. */
const RUNNING = {
  pid: process.ppid,
  databaseUrl: "postgres://u:secret@127.0.0.1/db",
  httpUrl: null,
  emulator: null,
  configFile: null,
};

function deadPid(): number {
  const { pid } = spawnSync(process.execPath, ["-e", ""]);
  return pid;
}

test("another command reads what the service has written", () => {
  const { folder } = makeFolder();
  const nested = path.join(folder, "not", "there", "yet");
  for (const httpUrl of [null, "http://127.0.0.1:8080"]) {
    writeRuntimeFile(nested, { ...RUNNING, httpUrl });
    expect(readRuntimeFile(nested)).toEqual({ ...RUNNING, httpUrl });
  }
});

test("only its owner may read the file, also when one with a wider mode was left behind", () => {
  const { folder, file } = makeFolder();
  writeFileSync(file, "left behind");
  chmodSync(file, 0o644);
  writeFileSync(`${file}.new`, "of a start that was killed");
  chmodSync(`${file}.new`, 0o666);
  writeRuntimeFile(folder, RUNNING);
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder)).toEqual(["runtime.json"]);
});

test.each([
  ["empty", ""],
  ["cut", '{"pid":1,"databaseUrl":"postgr'],
  ["no object", "[]"],
  ["without a database", `{"pid":${process.ppid},"httpUrl":null}`],
  ["with text for a process", '{"pid":"1","databaseUrl":"x","httpUrl":null}'],
  ["with process 0, the reader's own group", '{"pid":0,"databaseUrl":"x","httpUrl":null}'],
  ["with process -1, everybody", '{"pid":-1,"databaseUrl":"x","httpUrl":null}'],
])("a file that is %s names no running service", (_form, content) => {
  const { folder, file } = makeFolder();
  writeFileSync(file, content);
  expect(readRuntimeFile(folder)).toBeNull();
});

test("no file, a process that is gone, or the reader's own id name no running service", () => {
  const { folder } = makeFolder();
  expect(readRuntimeFile(folder)).toBeNull();
  writeRuntimeFile(folder, { ...RUNNING, pid: deadPid() });
  expect(readRuntimeFile(folder)).toBeNull();
  writeRuntimeFile(folder, { ...RUNNING, pid: process.pid });
  expect(readRuntimeFile(folder)).toBeNull();
});

test("a stopping service takes its own file away and leaves its successor's", () => {
  const { folder, file } = makeFolder();
  writeRuntimeFile(folder, { ...RUNNING, pid: process.pid });
  removeRuntimeFile(folder);
  expect(existsSync(file)).toBe(false);
  writeRuntimeFile(folder, RUNNING);
  removeRuntimeFile(folder);
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual(RUNNING);
  writeFileSync(file, "garbage");
  removeRuntimeFile(folder);
  removeRuntimeFile(folder);
  expect(existsSync(file)).toBe(false);
});
