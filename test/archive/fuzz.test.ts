import { connect } from "node:net";
import fc from "fast-check";
import { expect, it } from "vitest";
import { HOSTILE } from "#emulator/traffic/payloads.ts";
import { DIMENSIONS, OPERATORS } from "#model/kinds.ts";
import { draws, sample } from "../support/sample.ts";
import { type Ask, NOW, openArchive, post } from "./support.ts";

/** Words of our database and code that no answer may contain. */
const INSIDE =
  /waf_events|raw_blocks|rule_buckets|syntax error|SQLSTATE|select .* from|node_modules|\.ts:\d/i;
/** No question changes the archive. */
const { http, ask, key } = await openArchive({ zones: [101], eventsPerSecond: 0.03, historyHours: 2 });

async function expectCalm(ask: Ask, path: string, init?: Parameters<Ask>[1]): Promise<void> {
  const answer = await ask(path, init);
  // Events quote attacks, and those quote SQL: only what is said about a mistake must not.
  if (answer.status < 300 || (answer.status < 500 && !INSIDE.test(answer.text))) return;
  throw new Error(
    `${answer.status} ${answer.text.slice(0, 300)} to ${path} ${JSON.stringify(init?.body ?? null).slice(0, 500)}`,
  );
}

const INJECTIONS = [
  ...HOSTILE,
  "' or 1=1 --",
  "'; drop table api_keys; --",
  "$1",
  "\\",
  "%' escape '",
  "E'\\x00'",
  "../../etc/passwd",
  "%2e%2e%2f",
  "\u0000",
  "\ud800",
  "1e309",
  "NaN",
  "-0",
  "9".repeat(400),
  "{}",
  "((((((((((a*)*)*)*)*)*)*)*)*)*$",
  "*".repeat(200),
  "a*".repeat(100),
  "😀".repeat(50),
];
const anyText = fc.oneof(fc.constantFrom(...INJECTIONS), fc.string({ unit: "binary", maxLength: 40 }));
const segment = anyText.map((text) => encodeURIComponent(text.toWellFormed()));
const zone = fc.oneof(fc.constant("101"), segment);

const paths = fc.oneof(
  fc
    .tuple(zone, fc.oneof(fc.constant("11-20-2026"), segment), segment)
    .map((parts) => `/shield/event-logs/${parts.join("/")}`),
  fc.tuple(zone, segment).map((parts) => `/shield/event-logs/${parts.join("/")}`),
  fc.tuple(zone, segment).map(([id, rule]) => `/shield/metrics/shield-zone/${id}/waf-rule/${rule}`),
  fc
    .tuple(zone, segment)
    .map((parts) => `/shield/waf/rules/review-triggered/ai-recommendation/${parts.join("/")}`),
);

const filter = fc.record(
  {
    field: fc.oneof(fc.constantFrom(...DIMENSIONS), anyText),
    op: fc.oneof(fc.constantFrom(...OPERATORS), anyText),
    value: fc.oneof(fc.array(anyText, { maxLength: 4 }), fc.jsonValue()),
  },
  { requiredKeys: [] },
);
const time = fc.oneof(
  fc.integer({ min: NOW - 90_000_000, max: NOW + 60_000 }),
  fc.constantFrom(0, -1, 8_640_000_000_000_000, Number.MAX_SAFE_INTEGER, 1e300),
);
const bodies = fc.oneof(
  fc.record(
    {
      from: time,
      to: time,
      query: fc.oneof(anyText, fc.constant(null)),
      filters: fc.array(filter, { maxLength: 5 }),
      groupBy: fc.array(fc.oneof(fc.constantFrom(...DIMENSIONS), anyText), { maxLength: 4 }),
      buckets: fc.oneof(fc.integer(), fc.constant(null)),
      page: fc.oneof(fc.integer(), fc.nat(3)),
      pageSize: fc.integer(),
    },
    { requiredKeys: [] },
  ),
  fc.dictionary(anyText, fc.jsonValue()),
  fc.jsonValue(),
);
const sent = fc.oneof(
  bodies.map((body) => JSON.stringify(body)),
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.constantFrom(
    "[".repeat(100_000),
    `${"[".repeat(100)}${"]".repeat(100)}`,
    '{"a":'.repeat(50_000),
    "1e999",
  ),
);
const operation = fc.constantFrom("search", "export");

it("answers any path without an internal error", async () => {
  await fc.assert(
    fc.asyncProperty(paths, (path) => expectCalm(ask, path)),
    { numRuns: draws(30, 300) },
  );
});

it("answers whatever is sent to search and export without an error of its own", {
  timeout: 120_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(operation, sent, (name, text) =>
      expectCalm(ask, `/shield/event-logs/101/${name}`, post(text)),
    ),
    { numRuns: draws(30, 300) },
  );
});

it("answers well-formed questions made of hostile texts", async () => {
  const window = { from: NOW - 7_200_000, to: NOW };
  const ops = { eq: "url", in: "ja4", contains: "ua", wildcard: "url" } as const;
  for (const [index, text] of INJECTIONS.entries()) {
    // The gate asks with one of the operators for each text. hostile-texts.test.ts asks with all of them.
    const all = Object.entries(ops);
    for (const [op, field] of sample(all, (one) => (all.indexOf(one) + index) % 4 > 0)) {
      const body = { ...window, query: text, filters: [{ field, op, value: [text, text] }] };
      for (const more of [{}, { groupBy: [field], buckets: 2 }]) {
        const answer = await ask("/shield/event-logs/101/search", post({ ...body, ...more }));
        expect(answer.status).toBe(200);
      }
      expect((await ask("/shield/event-logs/101/export", post(body))).status).toBe(200);
    }
  }
});

it("survives bytes that are no request", async () => {
  const head = `POST /shield/event-logs/101/search HTTP/1.1\r\nHost: a\r\nAccessKey: ${key}\r\n`;
  const json = "Content-Type: application/json\r\n";
  for (const [name, bytes] of Object.entries({
    "a body that is no UTF-8": Buffer.concat([
      Buffer.from(`${head}${json}Content-Length: 4\r\nConnection: close\r\n\r\n`),
      Buffer.from([0xff, 0xfe, 0x22, 0xc0]),
    ]),
    "a compressed body": Buffer.from(
      `${head}${json}Content-Encoding: gzip\r\nContent-Length: 4\r\nConnection: close\r\n\r\nabcd`,
    ),
    "a body without a type": Buffer.from(`${head}Content-Length: 2\r\nConnection: close\r\n\r\n{}`),
    "a path that does not decode": Buffer.from(
      `GET /shield/event-logs/101/%zz HTTP/1.1\r\nHost: a\r\nAccessKey: ${key}\r\nConnection: close\r\n\r\n`,
    ),
  })) {
    const answer = await exchange(http.port, bytes);
    expect(`${name}: ${answer.slice(0, 12)}`).toMatch(/: HTTP\/1\.1 4\d\d?/);
    expect(answer).not.toMatch(INSIDE);
  }
  expect((await ask("/shield/event-logs/101/11-20-2026")).status).toBe(200);
});

function exchange(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    socket.on("close", () => resolve(text)).on("error", reject);
  });
}
