import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { makeKey } from "../faces/http/start-archive.ts";
import { ZONE } from "../ingest/ingest-support.ts";
import { createClient, NOW, openArchive, post, serve } from "./support.ts";

const SEARCH = `/shield/event-logs/${ZONE}/search`;
const EXPORT = `/shield/event-logs/${ZONE}/export`;
const ADVICE = `/shield/waf/rules/review-triggered/ai-recommendation/${ZONE}`;
const WINDOW = { from: NOW - 3 * HOUR_MS, to: NOW - HOUR_MS };

/** Few events are enough: what is asked here is refused, or is about how it is asked. No test changes them. */
const { ask, platform, database, emulator, http } = await openArchive({
  zones: [ZONE],
  eventsPerSecond: 0.02,
  historyHours: 4,
});

function sent(body: string | Buffer<ArrayBuffer>, contentType: string): RequestInit {
  return { method: "POST", body, headers: { "content-type": contentType } };
}

test("a search is read in the charset that it names", async () => {
  const body = JSON.stringify({ ...WINDOW, query: "SQL", pageSize: 2 });
  const plain = await ask(SEARCH, post(body));
  const wide = await ask(SEARCH, sent(Buffer.from(body, "utf16le"), "application/json; charset=utf-16le"));

  expect(JSON.parse(plain.text)).toMatchObject({ rows: [{}, {}] });
  expect([wide.status, wide.text]).toEqual([200, plain.text]);
});

test.each([SEARCH, EXPORT])(
  "%s refuses a charset that nobody knows, and bytes that are no text of theirs",
  async (path) => {
    const body = JSON.stringify({ ...WINDOW, query: "x" });
    const unknown = await ask(path, sent(body, "application/json; charset=bogus"));
    const broken = await ask(
      path,
      sent(Buffer.from(body.replace('"x"', '"\xff"'), "latin1"), "application/json"),
    );
    const latin = await ask(
      path,
      sent(Buffer.from(body.replace('"x"', '"\xe9"'), "latin1"), 'application/json; charset="iso-8859-1"'),
    );

    expect([unknown.status, broken.status, latin.status]).toEqual([415, 400, 200]);
    expect(JSON.parse(broken.text)).toMatchObject({ errors: { $: ["The body is not valid JSON."] } });
  },
);

test("an export is CSV for a client that prefers it to lines or does not accept lines", async () => {
  const types = [];
  for (const accept of [
    "application/x-ndjson",
    "application/x-ndjson;q=0",
    "text/csv, application/x-ndjson;q=0.5",
  ])
    types.push((await ask(EXPORT, post(WINDOW, { accept }))).type);

  expect(types).toEqual([
    "application/x-ndjson; charset=utf-8",
    "text/csv; charset=utf-8",
    "text/csv; charset=utf-8",
  ]);
});

test.each([
  ["PUT", SEARCH, "GET, HEAD, OPTIONS, POST"],
  ["DELETE", `/shield/event-logs/${ZONE}/11-20-2026`, "GET, HEAD, OPTIONS"],
  ["POST", "/apikey", "GET, HEAD, OPTIONS"],
  ["POST", `${ADVICE}/930130`, "GET, HEAD, OPTIONS"],
])("%s %s is answered with the allowed methods, as the platform does", async (method, path, allow) => {
  const refused = await ask(path, { method, key: null });

  expect(refused.status).toBe(405);
  expect((await platform(path, { method })).status).toBe(405);
  expect(refused.headers.get("allow")).toBe(allow);
  expect(JSON.parse(refused.text)).toMatchObject({
    status: 405,
    detail: `This path does not accept ${method}. It accepts ${allow}.`,
  });
});

test("an impossible rule id is unknown, and the platform is not asked about it", async () => {
  const asked: string[] = [];
  const asking = await serve(database, emulator, {
    askAdvice: async ({ ruleId }) => {
      asked.push(ruleId);
      return { kind: "not-now" };
    },
  });
  // A client would take the dots out of a path by itself.
  for (const rule of ["%00", "x".repeat(201), "a%00b"]) {
    const [ours, theirs] = [await asking.ask(`${ADVICE}/${rule}`), await platform(`${ADVICE}/${rule}`)];
    expect([ours.status, ours.type, ours.text]).toEqual([theirs.status, theirs.type, theirs.text]);
  }
  expect(asked).toEqual([]);
});

test.each(["010.0.0.0/8", "10.1/16", "0x0a.0.0.0/8", "167772160", "::ffff:010.0.0.1"])(
  "%s is no network: some would read another one into it",
  async (network) => {
    const filters = [{ field: "ip", op: "cidr", value: [network] }];
    const [ours, theirs] = [
      await ask(SEARCH, post({ ...WINDOW, filters })),
      await platform(SEARCH, post({ ...WINDOW, filters })),
    ];

    expect(ours.status).toBe(400);
    expect(ours.text).toContain("must be an IPv4 or IPv6 network");
    expect([theirs.status, theirs.text]).toEqual([400, ours.text]);
  },
);

test.each(["page", "pageSize", "buckets"])(
  "%s ends where 32 bits end, here and at the platform",
  async (field) => {
    for (const [value, status] of [
      [2_147_483_647, 200],
      [2_147_483_648, 400],
      [-2_147_483_648, 200],
      [-2_147_483_649, 400],
    ] as const) {
      const request = post({ ...WINDOW, [field]: value });
      const [ours, theirs] = [await ask(SEARCH, request), await platform(SEARCH, request)];
      expect([value, ours.status, theirs.status]).toEqual([value, status, status]);
    }
  },
);

test("a body full of mistakes is not answered with many times its size", async () => {
  const answer = await ask(SEARCH, post({ ...WINDOW, groupBy: Array.from({ length: 60_000 }, () => 1) }));

  expect(answer.status).toBe(400);
  expect(Object.keys((JSON.parse(answer.text) as { errors: object }).errors)).toHaveLength(50);
  expect(answer.text.length).toBeLessThan(20_000);
});

test("the error for a body that is too deep or too large states the limit", async () => {
  const deep = await ask(SEARCH, post(`${"[".repeat(200)}${"]".repeat(200)}`));
  const large = await ask(SEARCH, post(JSON.stringify({ ...WINDOW, query: "x".repeat(300_000) })));

  expect([deep.status, JSON.parse(deep.text)]).toMatchObject([
    400,
    { detail: expect.stringContaining("32 deep") },
  ]);
  expect([large.status, JSON.parse(large.text)]).toMatchObject([
    413,
    { detail: "The request body must be at most 262144 bytes." },
  ]);
});

test("a validation problem says in its detail which field breaks which rule, and how many more there are", async () => {
  const detailOf = async (body: unknown) =>
    (JSON.parse((await ask(SEARCH, post(body))).text) as { detail: string }).detail;

  expect(await detailOf({ ...WINDOW, page: 1.5 })).toBe(
    "The value 1.5 is not valid: page must be a 32-bit integer.",
  );
  expect(await detailOf({ from: "a", to: NOW, groupBy: ["rule"], buckets: "b" })).toBe(
    'The value "a" is not valid: from is required and must be Unix time in milliseconds. (and 2 more)',
  );
});

test.each([
  [`${ADVICE.replace(/\d+$/, "x")}/930130`, 400],
  [`${ADVICE}/`, 404],
  ["/shield/metrics/shield-zone/x/waf-rule/930130", 400],
  [`/shield/metrics/shield-zone/${ZONE}/waf-rule/a.b`, 400],
])("%s is refused with its status alone, as the platform does it", async (path, status) => {
  const [ours, theirs] = [await ask(path), await platform(path)];

  expect([ours.status, ours.type, ours.text]).toEqual([
    status,
    "application/json; charset=utf-8",
    JSON.stringify({ statusCode: status }),
  ]);
  expect([theirs.status, theirs.type, theirs.text]).toEqual([ours.status, ours.type, ours.text]);
});

test("the limits of a search that the documentation names are the ones that hold", async () => {
  const filter = { field: "url", op: "eq", value: ["x"] };
  const statusOf = async (more: object) => (await ask(SEARCH, post({ ...WINDOW, ...more }))).status;
  const docs = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8").replaceAll(/\s+/g, " ");

  expect(docs).toContain("at most 50 filters, 1,000 values in one filter, 10,000 characters in one text");
  for (const [more, status] of [
    [{ filters: Array.from({ length: 50 }, () => filter) }, 200],
    [{ filters: Array.from({ length: 51 }, () => filter) }, 400],
    [{ filters: [{ ...filter, value: Array(1_000).fill("x") }] }, 200],
    [{ filters: [{ ...filter, value: Array(1_001).fill("x") }] }, 400],
    [{ query: "x".repeat(10_000) }, 200],
    [{ query: "x".repeat(10_001) }, 400],
    [{ filters: [{ ...filter, value: ["x".repeat(10_001)] }] }, 400],
  ] as const)
    expect([JSON.stringify(more).slice(0, 60), await statusOf(more)]).toEqual([
      JSON.stringify(more).slice(0, 60),
      status,
    ]);
});

test.each([SEARCH, EXPORT])(
  "%s refuses more tests than a request may ask of an event, and names the limit",
  async (path) => {
    const filters = Array.from({ length: 40 }, (_, filter) => ({
      field: "url",
      op: "contains",
      value: Array.from({ length: 400 }, (_, value) => `${filter}.${value}`),
    }));
    const answer = await ask(path, post({ ...WINDOW, filters }));

    expect(answer.status).toBe(400);
    const rule = expect.stringContaining("The filters ask for 16000 tests; at most 5000 are allowed");
    expect(JSON.parse(answer.text)).toMatchObject({ errors: { filters: [rule] } });
    const same = await ask(path, post({ ...WINDOW, filters: Array(40).fill(filters[0]) }));
    expect(same.status).toBe(200);
  },
);

const methodsOf = (allow: string) => [...new Set(allow.split(", "))].sort();

test("a HEAD answers like the GET without its body, and another method is refused with the same list", async () => {
  const answers = async (client: typeof ask, path: string, method: string) => {
    const { status, text, headers } = await client(path, { method });
    return { status, text, allow: headers.get("allow") };
  };
  for (const path of [`/shield/event-logs/${ZONE}/11-20-2026`, `/shield/event-logs/${ZONE}/bad-day`]) {
    const got = await ask(path);
    expect(await answers(ask, path, "HEAD")).toEqual({ status: got.status, text: "", allow: null });
    expect(await answers(platform, path, "HEAD")).toEqual(await answers(ask, path, "HEAD"));
  }
  for (const [path, method] of [
    [`/shield/event-logs/${ZONE}/11-20-2026`, "PUT"],
    [SEARCH, "PUT"],
    [`${ADVICE}/942100`, "POST"],
  ] as const) {
    const [ours, theirs] = [await answers(ask, path, method), await answers(platform, path, method)];
    expect([ours.status, theirs.status]).toEqual([405, 405]);
    // OPTIONS is Longwatch's own.
    expect([path, ...methodsOf(`${theirs.allow}, OPTIONS`)]).toEqual([path, ...methodsOf(ours.allow ?? "")]);
  }
});

test.each([
  ["page=1&page=2", "page", "1,2"],
  ["perPage=5&perPage=5", "perPage", "5,5"],
  ["page=1&perPage=x", "perPage", "x"],
])(
  "the key list refuses ?%s with the field and the values, as the emulator does",
  async (query, field, value) => {
    const { key } = await makeKey(database, "admin");
    const ours = await createClient(http.url, key)(`/apikey?${query}`);
    const theirs = await platform(`/apikey?${query}`);
    expect([ours.status, theirs.status]).toEqual([400, 400]);
    expect(JSON.parse(ours.text)).toMatchObject({
      Field: field,
      Message: expect.stringContaining(`'${value}'`),
    });
    expect(JSON.parse(theirs.text)).toEqual(JSON.parse(ours.text));
  },
);
