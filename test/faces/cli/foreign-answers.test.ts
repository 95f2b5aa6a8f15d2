import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, createServer as createRawServer } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { EXPORT_HEADER } from "#archive/rules/export-lines.ts";
import { searchEvents } from "#archive/search/search-events.ts";
import { parseConfig } from "#config/config.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { subjectCommand } from "#faces/cli/operations/operation-command.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { statusCommand } from "#faces/cli/status/status.ts";
import { tailCommand } from "#faces/cli/tail/tail.ts";
import { topCommand } from "#faces/cli/top/top.ts";
import { showOverview } from "#health/service/overview.ts";
import { showStatus } from "#health/service/status.ts";
import type { UsageError } from "#lib/errors.ts";
import { OPERATIONS } from "#operations/index.ts";
import type { CommandForm, Operation } from "#operations/operation.ts";
import { type Ran, runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
const HOSTILE = "\u001b[2J\u001b]0;owned\u0007\u009b31m\rfake\u202e";
const PAGE = "<!doctype html><title>Sign in</title>";

let url: string;
let answer: (response: ServerResponse) => void;
const server = createServer((_request, response) => answer(response));
beforeAll(async () => {
  await once(server.listen(0, "127.0.0.1"), "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, "close");
});
beforeEach(() => {
  answer = (response) => response.end(PAGE);
});

const say =
  (body: string, type = "application/json", status = 200) =>
  (response: ServerResponse) =>
    response.writeHead(status, { "content-type": type }).end(body);

type Form = CommandForm<never, never>;
const named = OPERATIONS.flatMap((operation: Operation) =>
  ([operation.command ?? []].flat() as Form[]).map((form) => ({ name: operation.name, operation, form })),
);
const environment = () => ({ LONGWATCH_URL: url, LONGWATCH_KEY: "key" });

/** Runs a command with the arguments of its first example. */
function run({ name, operation, form }: (typeof named)[number], more: readonly string[] = []) {
  const typed = [...(form.examples[0] ?? "").matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, plain]) => double ?? single ?? plain ?? "",
  );
  const subject = typed.splice(0, name.startsWith("config.") ? 2 : 1).join(" ");
  const create = (
    readConfig: () => ReturnType<typeof parseConfig>,
    io: Parameters<typeof statusCommand>[1],
  ) => subjectCommand(subject, "x.", [operation], readConfig, io as never);
  const terminal = { now: NOW, isTTY: true, hasColors: false };
  return runStoreCommand(create, environment(), [...typed, ...more], terminal);
}

const OTHERS = [
  ["status", statusCommand, []],
  ["top", topCommand, ["--once"]],
  ["search", searchCommand, ["--zone", "101", "--from", "-1h"]],
  ["tail", tailCommand, []],
  ["export", exportCommand, ["--zone", "101", "--from", "-1h"]],
] as const;

type Broken = readonly [what: string, answer: ReturnType<typeof say>];

/** What programs in front of a service answer. The first two are valid JSON, which only the schema of an operation refuses. */
const BROKEN: readonly Broken[] = [
  ["an empty object", say("{}")],
  ["a list", say("[]")],
  ["a sign-in page", say(PAGE, "text/html")],
  ["an empty answer", say("")],
  ["null", say("null")],
  ["half an answer", say('{"items":[{"id":1')],
  ["items of another kind", say('{"items":[7],"next":null}')],
  ["204", say("", "application/json", 204)],
];
const VALID_JSON = BROKEN.slice(0, 2);
const listAlerts = named.find(({ name }) => name === "alerts.list") as (typeof named)[number];

async function expectRefused([what, given]: Broken, ask: () => Promise<Ran>) {
  answer = given;
  const { code, out, err } = await ask();
  expect({ what, code, out }).toEqual({ what, code: 1, out: "" });
  expect(err).toContain("does not answer as Longwatch does");
}

test.each(BROKEN)("a list is an error if the service answers with %s, also as JSON", async (...broken) => {
  for (const more of [[], ["--json"]]) await expectRefused(broken, () => run(listAlerts, more));
});

test.each(named.filter(({ operation }) => !operation.output.safeParse(7).success))(
  "$name of a service that is no Longwatch is an error, and never an empty answer",
  async (one) => {
    const [object, list] = VALID_JSON as [Broken, Broken];
    await expectRefused(list, () => run(one));
    // An operation whose members may all be missing cannot tell.
    if (!one.operation.output.safeParse({}).success) await expectRefused(object, () => run(one));
  },
);

test.each(OTHERS)("%s of a service that is no Longwatch is an error", async (name, create, args) => {
  // An export is a stream, which another function reads.
  for (const broken of name === "export" ? BROKEN : VALID_JSON)
    await expectRefused(broken, () => runStoreCommand(create, environment(), [...args], { now: NOW }));
});

test("an answer that never ends is given up after 64 MiB", async () => {
  let sent = 0;
  answer = (response) => {
    const chunk = Buffer.alloc(2 ** 20, " ");
    const more = () => {
      while (!response.destroyed && (sent += chunk.length) > 0) if (!response.write(chunk)) break;
    };
    response.writeHead(200, { "content-type": "application/json" }).on("drain", more);
    more();
  };
  const { code, out, err } = await run(listAlerts);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("larger than 64 MiB");
  expect(sent).toBeLessThan(100 * 2 ** 20);
});

test("a status without what needs attention is an error", async () => {
  answer = say(JSON.stringify(drawOutput(showStatus)));
  const { code, err } = await runStoreCommand(statusCommand, environment(), [], { now: NOW });
  expect([code, err]).toEqual([1, "longwatch status: the answer lacks attention, which was asked for\n"]);
});

test("a list whose page names itself as the next one is an error", async () => {
  let asked = 0;
  answer = (response) => {
    asked += 1;
    say('{"items":[],"next":"again"}')(response);
  };
  const { code, out, err } = await run(listAlerts);
  expect({ code, out, asked }).toEqual({ code: 1, out: "", asked: 2 });
  expect(err).toContain("the list does not end");
});

/** Members whose texts are times, which the schemas do not say. */
const TIMES =
  /(?:At|Since|Until|Through)$|^(?:now|at|from|to|until|since|through|lastSeen|oldest|firstHour)$/;

type Schema = z.core.JSONSchema.BaseSchema;

/** Returns a value of the operation's output, with a hostile text wherever the schema allows any. */
function drawOutput({ output }: Operation): unknown {
  const whole = z.toJSONSchema(output, { unrepresentable: "any" });
  const draw = (schema: Schema, name = ""): unknown => {
    const { $ref, type, enum: words, const: only, anyOf, oneOf, properties = {}, required = [] } = schema;
    if ($ref !== undefined) return draw(whole.$defs?.[$ref.replace("#/$defs/", "")] as Schema, name);
    if (only !== undefined) return only;
    if (words !== undefined) return words[0];
    const isReal = (one: unknown) => (one as Schema).type !== "null";
    const first = [anyOf ?? oneOf ?? []].flat().find(isReal);
    if (first !== undefined) return draw(first, name);
    if (type === "object") {
      const { enum: keys = [] } = (schema.propertyNames ?? {}) as Schema;
      const named = keys.map((name) => [String(name), schema.additionalProperties] as const);
      const members = Object.entries(properties).filter(([name]) => required.includes(name));
      const drawn = [...named, ...members].map(([name, one]) => [
        name,
        name === "next" ? null : draw(one as Schema, name),
      ]);
      return Object.fromEntries(drawn);
    }
    if (type === "array")
      return [schema.prefixItems ?? schema.items ?? []].flat().map((one) => draw(one as Schema, name));
    if (type === "integer" || type === "number")
      return Math.min(schema.maximum ?? 1, Math.max(1, schema.minimum ?? 1));
    if (type === "boolean") return true;
    if (type === "string") return TIMES.test(name) ? new Date(NOW).toISOString() : HOSTILE;
    return null;
  };
  return draw(whole);
}

/** What moves a cursor, colours or reorders: all but the lines of the command's own text. */
const ACTS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const isPlain = (text: string) => !ACTS.test(text.replaceAll(/\r\n|[\n\t]/g, ""));

test.each(named)("$name prints no text of the service that a terminal acts on", async (one) => {
  const value = drawOutput(one.operation);
  expect(one.operation.output.safeParse(value).error).toBeUndefined();
  answer = say(JSON.stringify(value));
  const { out, err } = await run(one);
  expect({ name: one.name, err }).toEqual({ name: one.name, err: "" });
  expect(isPlain(out)).toBe(true);
  answer = say(
    JSON.stringify({ detail: HOSTILE, mistakes: [{ field: HOSTILE, rule: HOSTILE, value: HOSTILE }] }),
    "application/problem+json",
    422,
  );
  expect(isPlain((await run(one)).err)).toBe(true);
});

test.each([
  ["status", statusCommand, showStatus, []],
  ["top", topCommand, showOverview, ["--once"]],
  ["search", searchCommand, searchEvents, ["--zone", "101", "--from", "-1h"]],
  ["search --csv", searchCommand, searchEvents, ["--zone", "101", "--from", "-1h", "--csv"]],
] as const)(
  "%s prints no text of the service that a terminal acts on",
  async (_name, create, operation, args) => {
    // A detailed status has what needs attention.
    answer = say(JSON.stringify({ attention: [], ...(drawOutput(operation) as object) }));
    const { out, err } = await runStoreCommand(create, environment(), [...args], {
      now: NOW,
      isTTY: true,
      hasColors: false,
    });
    expect(err).toBe("");
    expect(out).not.toBe("");
    expect(isPlain(out)).toBe(true);
  },
);

test.each(["csv", "ndjson"])(
  "an export as %s to a terminal shows controls as text, and a pipe gets them",
  async (form) => {
    const text = `${form === "csv" ? EXPORT_HEADER : ""}${HOSTILE}\n`;
    answer = say(text, form === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson");
    const args = ["--zone", "101", "--from", "-1h", "--format", form];
    const show = (isTTY: boolean) => runStoreCommand(exportCommand, environment(), args, { now: NOW, isTTY });
    expect(isPlain((await show(true)).out)).toBe(true);
    expect((await show(false)).out).toBe(text);
  },
);

/** More than the sockets and the client hold at once. */
const ROWS = "1,2,3\r\n".repeat(20_000);
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
/** Each body is cut where a line or a chunk ends. */
const CUT: readonly (readonly [string, (text: string) => string | Buffer])[] = [
  ["connection: close", (text) => text],
  ["transfer-encoding: identity", (text) => text],
  ["transfer-encoding: chunked, identity", (text) => text],
  ["transfer-encoding: not-chunked", (text) => text],
  ["transfer-encoding: chunked", chunk],
  ["transfer-encoding: chunked", (text) => `${chunk(text)}0\r\n`],
  [`content-length: 99999999`, (text) => text],
  ["content-encoding: zstd", () => ""],
  ["content-encoding: zstd", (text) => zstdCompressSync(text).subarray(0, -1)],
  ["content-encoding: gzip", (text) => gzipSync(text)],
];

test.each(["1.0", "1.1"].flatMap((version) => CUT.map(([header, cut]) => ({ version, header, cut }))))(
  "an export whose HTTP/$version answer with $header is cut is an error",
  async ({ version, header, cut }) => {
    let answered = Buffer.alloc(0);
    const raw = createRawServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => socket.end(answered));
    });
    await once(raw.listen(0, "127.0.0.1"), "listening");
    const env = {
      ...environment(),
      LONGWATCH_URL: `http://127.0.0.1:${(raw.address() as AddressInfo).port}`,
    };
    for (const [form, type, begins] of [
      ["csv", "text/csv", EXPORT_HEADER],
      ["ndjson", "application/x-ndjson", ""],
    ] as const) {
      const head = `HTTP/${version} 200 OK\r\ncontent-type: ${type}\r\n${header}\r\n\r\n`;
      answered = Buffer.concat([Buffer.from(head), Buffer.from(cut(begins + ROWS))]);
      const args = ["--zone", "101", "--from", "-1h", "--format", form];
      const { code, err } = await runStoreCommand(exportCommand, env, args, { now: NOW });
      expect({ form, code }).toEqual({ form, code: 1 });
      expect(err).toMatch(/ended its answer before the end|does not say where it ends/);
    }
    raw.close();
  },
);

test.each([
  ["http://waf.example", {}, false],
  ["http://10.0.0.7:8080", {}, false],
  ["http://localhost.example", {}, false],
  ["http://127.0.0.1.example", {}, false],
  ["http://[2001:db8::1]:8080", {}, false],
  ["http://waf.example", { LONGWATCH_PLAIN_HTTP: "true" }, true],
  ["https://waf.example", {}, true],
  ["http://127.0.0.1:8080/longwatch", {}, true],
  ["http://localhost:8080", {}, true],
  ["http://[::1]:8080", {}, true],
])("the address %s with %j is accepted: %s", (address, more, isAccepted) => {
  const read = () => {
    try {
      return parseConfig({ LONGWATCH_URL: address, LONGWATCH_KEY: "key", ...more }).remote?.url;
    } catch (thrown) {
      return (thrown as UsageError).mistakes;
    }
  };
  const mistake = `LONGWATCH_URL: "${address}": must be https, because http to another machine sends the key readably; LONGWATCH_PLAIN_HTTP=true or --plain-http allows it`;
  expect(read()).toEqual(isAccepted ? address : [mistake]);
});
