import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { file } from "#delivery/receivers/sinks/file.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { failureOf } from "../support/receiver.ts";
import { eventOf, eventsOf, HOUR, idsOf, sending } from "./world.ts";

const HOST = os.hostname().replaceAll(/[^\w.]/g, "_");

function openIn(folder: string, { maxMegabytes = 100, clock = () => HOUR } = {}) {
  return file.open({ name: "disk", folder, maxMegabytes, clock });
}

const filesIn = (folder: string) => readdirSync(folder).sort();
const textOf = (folder: string) =>
  filesIn(folder)
    .map((name) => readFileSync(path.join(folder, name), "utf8"))
    .join("");
const idsIn = (folder: string) =>
  textOf(folder)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (JSON.parse(line) as { id: string }).id);

test("every event is one line of a private file, named by destination, time, host and process", async () => {
  const folder = path.join(makeTemporaryFolder("sink"), "new", "folder");
  const sink = openIn(folder);
  expect(existsSync(folder)).toBe(false);
  const events = [
    ...eventsOf(3),
    { ...eventOf("pretty", { text: "a\u2028b" }), body: '{\n"id": "101-pretty"\r\n}' },
  ];
  expect(await sink.send(events, sending())).toEqual({ refused: [], postponed: [], waitMs: null });
  expect(idsIn(folder)).toEqual(idsOf(events));
  const [name = ""] = filesIn(folder);
  expect(name).toMatch(/^disk-20261121T140000000Z-.+-\d+-[0-9a-f]{8}\.ndjson$/);
  expect(name).toContain(`-${HOST}-${process.pid}-`);
  expect(statSync(path.join(folder, name)).mode & 0o777).toBe(0o600);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(sink.count).toBeNull();
});

test("batches that are sent at the same time are appended one after the other", async () => {
  const folder = makeTemporaryFolder("sink");
  const sink = openIn(folder);
  await Promise.all(
    Array.from({ length: 20 }, (_, at) => sink.send([eventOf(`a${at}`), eventOf(`b${at}`)], sending())),
  );
  expect(filesIn(folder)).toHaveLength(1);
  expect(idsIn(folder)).toEqual(Array.from({ length: 20 }, (_, at) => [`101-a${at}`, `101-b${at}`]).flat());
});

test("a new file begins with a new UTC day, and when the file would become larger than allowed", async () => {
  const folder = makeTemporaryFolder("sink");
  let nowMs = HOUR;
  const sink = openIn(folder, { maxMegabytes: 1, clock: () => (nowMs += 1) });
  const large = (logId: string) => eventOf(logId, { text: "x".repeat(600_000) });
  await sink.send([large("a")], sending());
  await sink.send([eventOf("b")], sending());
  expect(filesIn(folder)).toHaveLength(1);
  await sink.send([large("c")], sending());
  expect(filesIn(folder)).toHaveLength(2);
  nowMs += 10 * 3_600_000;
  await sink.send([eventOf("d")], sending());
  expect(filesIn(folder).map((name) => name.slice(0, 13))).toEqual([
    "disk-20261121",
    "disk-20261121",
    "disk-20261122",
  ]);
  expect(idsIn(folder)).toEqual(["101-a", "101-b", "101-c", "101-d"]);
});

test("two sinks of one destination never write the same file", async () => {
  const folder = makeTemporaryFolder("sink");
  let nowMs = HOUR;
  const clock = () => (nowMs += 1);
  await openIn(folder, { clock }).send([eventOf("a")], sending());
  await openIn(folder, { clock }).send([eventOf("b")], sending());
  expect(filesIn(folder)).toHaveLength(2);
  // At the same millisecond the second one fails, and the attempt after it succeeds.
  const one = openIn(folder);
  const other = openIn(folder);
  await one.send([eventOf("c")], sending());
  expect(await failureOf(other.send([eventOf("d")], sending()))).toMatchObject({
    code: "STREAM_FAILED",
    disposition: "retry",
    message: "cannot write the file (EEXIST)",
  });
});

test("half a line of a process that was killed is removed, also behind several megabytes", async () => {
  const folder = makeTemporaryFolder("sink");
  const { pid } = spawnSync(process.execPath, ["--version"]);
  const leave = (name: string, text: string) => writeFileSync(path.join(folder, name), text);
  const read = (name: string) => readFileSync(path.join(folder, name), "utf8");
  const dead = `disk-20261121T130000000Z-${HOST}-${pid}-00000000.ndjson`;
  const noLine = `disk-20261121T130000001Z-${HOST}-${pid}-00000000.ndjson`;
  const samePid = `disk-20261121T130000002Z-${HOST}-${process.pid}-00000000.ndjson`;
  const alive = `disk-20261121T130000003Z-${HOST}-${process.ppid}-00000000.ndjson`;
  const otherHost = `disk-20261121T130000004Z-elsewhere-${pid}-00000000.ndjson`;
  const otherName = `disks-20261121T130000005Z-${HOST}-${pid}-00000000.ndjson`;
  leave(dead, `{"id":"a"}\n{"id":"${"b".repeat(200_000)}`);
  for (const name of [noLine, alive, otherHost, otherName]) leave(name, '{"id":"torn');
  leave(samePid, '{"id":"a"}\n{"id":"b"}\n');
  await openIn(folder).send([eventOf("new")], sending());
  expect(read(dead)).toBe('{"id":"a"}\n');
  expect(read(noLine)).toBe("");
  expect(read(samePid)).toBe('{"id":"a"}\n{"id":"b"}\n');
  for (const name of [alive, otherHost, otherName]) expect(read(name)).toBe('{"id":"torn');
});

test("the bytes of a failed attempt are removed before the next one appends", async () => {
  const folder = makeTemporaryFolder("sink");
  const sink = openIn(folder);
  await sink.send([eventOf("a")], sending());
  const [name = ""] = filesIn(folder);
  appendFileSync(path.join(folder, name), '{"id":"half');
  await sink.send([eventOf("b")], sending());
  expect(idsIn(folder)).toEqual(["101-a", "101-b"]);
});

test("after the file was moved away, the next attempts write a new one", async () => {
  const folder = makeTemporaryFolder("sink");
  let nowMs = HOUR;
  const sink = openIn(folder, { clock: () => (nowMs += 1) });
  await sink.send([eventOf("a")], sending());
  const [name = ""] = filesIn(folder);
  renameSync(path.join(folder, name), `${folder}-moved`);
  expect(await failureOf(sink.send([eventOf("b")], sending()))).toMatchObject({ disposition: "retry" });
  await sink.send([eventOf("b")], sending());
  expect(idsIn(folder)).toEqual(["101-b"]);
  rmSync(`${folder}-moved`);
});

test("a folder that cannot be used is a failure that names the reason and no path", async () => {
  const parent = makeTemporaryFolder("sink");
  const taken = path.join(parent, "taken");
  writeFileSync(taken, "");
  expect(await failureOf(openIn(path.join(taken, "below")).send(eventsOf(1), sending()))).toMatchObject({
    disposition: "retry",
    message: "cannot write the file (ENOTDIR)",
  });
});

test("an aborted attempt writes nothing", async () => {
  const folder = makeTemporaryFolder("sink");
  const reason = new Error("the service stops");
  const sent = openIn(folder).send(eventsOf(1), sending({ signal: AbortSignal.abort(reason) }));
  await expect(sent).rejects.toBe(reason);
  expect(filesIn(folder)).toEqual([]);
});
