import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { confirm, defineTask } from "#faces/cli/store/define-task.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20);

const taskCommand = defineTask({
  name: "task",
  summary: "Do something.",
  help: "",
  operand: ["file", "a file"],
  options: { "--zone-id <id>": "shield zone (required)", "--check": "only check" },
  read: (flags, read, { operand }) => ({
    zoneId: read.id("zone-id", flags.zoneId, "a number"),
    check: flags.check === true,
    operand,
  }),
  async run(input) {
    return { facts: input, text: "done\n", isFailed: input.check };
  },
});

const run = (line: string) => runStoreCommand(taskCommand, {}, line.split(" "), { now: NOW });

test("a task prints its text, or its facts with --json, and its exit code says whether the work failed", async () => {
  expect(await run("a.tar --zone-id 7")).toEqual({ code: 0, out: "done\n", err: "" });
  const { out, code } = await run("a.tar --zone-id 7 --check --json");
  expect(JSON.parse(out)).toEqual({ zoneId: 7, check: true, operand: "a.tar" });
  expect(code).toBe(1);
});

test("every mistake of a task is reported, and nothing runs", async () => {
  const { code, out, err } = await run("a.tar b.tar --zone-id x --deep");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  for (const named of ['"b.tar" is not', '"--deep" is not', '--zone-id "x" must be a number'])
    expect(err).toContain(named);
});

test("Ctrl-C at a question ends it without a change", async () => {
  const stopping = new AbortController();
  const io = { stdin: new PassThrough(), stderr: new PassThrough() };
  const asked = confirm(io, "3 events\n", "erase", stopping.signal);
  expect(String(io.stderr.read())).toBe('3 events\nType "erase" to continue: ');
  stopping.abort();
  await expect(asked).rejects.toThrow("not confirmed; nothing was changed");
});
