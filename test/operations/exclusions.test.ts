import { afterAll, beforeAll, expect, test } from "vitest";
import { maskVerdict } from "#alerts/operations/mask-message.ts";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { storeProposal } from "#db/detection/exclusions.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { replayClause } from "#detection/exclusions/replay.ts";
import { createRandom } from "#emulator/traffic/random.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive/archive-folder.ts";
import { openArchiveWorld } from "../archive/files/archive-world.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { testBothWays } from "../faces/cli/both-ways.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";

const RULE = "942440";
/** The first day is in the archive, the second in Postgres. */
const DAY = "2026-11-15";
const START = Date.parse(DAY);
const NOW = START + 5 * DAY_MS;
const SPAN = { from: START, to: NOW };
/** The zone of the tests that store more events. */
const OTHER_ZONE = 102;
const FORM_ZONE = 104;

interface Drawn extends WafEvent {
  readonly method: string;
  readonly parameter: string;
  readonly matched: string;
}

const world = await openArchiveWorld();
let folder: ArchiveFolder;
let events: Drawn[];

/** Visitors who misfire, an attacker with many rules, and others, on both days. */
function draw(): Drawn[] {
  const random = createRandom();
  random.reseed(7, 7, 7, 7);
  const fraction = () => random.fraction();
  const pick = <One>(list: readonly One[]) => random.pick(list);
  return Array.from({ length: 400 }, (_, index) => {
    const isAttacker = fraction() < 0.2;
    const path = pick([
      "/reviews/12",
      "/reviews/7?page=2",
      "/reviews/x",
      "/login",
      "/login?x=/reviews/7",
      "/reviews/7/admin",
      "/search?q=1 union select 2",
    ]);
    const event = makeEvent({
      logId: `e${index}`,
      occurredAt: START + Math.floor(fraction() * 2 * DAY_MS),
      ruleId: isAttacker
        ? pick([RULE, "941100", "932100", "930100", "933100"])
        : pick([RULE, RULE, "942200"]),
      ip: isAttacker ? `198.51.100.${index % 5}` : `203.0.113.${index % 60}`,
      url: `https://shop.example.test${path}`,
      feature: "waf",
      action: pick(["block", "log"]),
    });
    const matched = fraction() < 0.1 ? "<script>alert(1)</script>" : "it's -- fine";
    return {
      ...event,
      method: pick(["POST", "POST", "GET"]),
      parameter: pick(["ARGS:title", "ARGS:title", "ARGS:body"]),
      matched,
    };
  });
}

async function storeRecords(drawn: readonly Drawn[], zoneId = 101): Promise<void> {
  const records = drawn.map(({ method, parameter, matched, ...event }) => {
    const log = JSON.stringify({ Url: event.url, TriggerMatch: { Key: parameter, Value: matched } });
    const entry = { logId: event.logId, timestamp: event.occurredAt, log, labels: { method } };
    return {
      occurredAt: event.occurredAt,
      logIdHash: hashEventKey(event),
      raw: Buffer.from(JSON.stringify(entry)),
    };
  });
  await insertRawBlocks(world.database.db, zoneId, await packRawBlocks(records));
}

beforeAll(async () => {
  folder = await openFolder();
  events = draw();
  const plain = events.map(({ parameter: _p, matched: _t, ...event }) => event);
  await world.store(plain, { hasRecord: () => false });
  await storeRecords(events);
  await archiveDay(world.database, folder, DAY);
});
afterAll(() => folder.close());

const replay = (
  clause: { template: string | null; method: string | null; parameter: string | null },
  span = SPAN,
  zoneId = 101,
) =>
  replayClause(
    { queries: world.database, files: folder.files, openedBlocks: createOpenedBlocks() },
    zoneId,
    { ...span, clause: { ruleIds: [RULE], ...clause } },
    new AbortController().signal,
  );

/** The same numbers by a loop over the events. */
function count(
  drawn: readonly Drawn[],
  isIn: (event: Drawn) => boolean,
  isMatching: (event: Drawn) => boolean = () => true,
  isText = false,
) {
  const dayOf = ({ occurredAt }: Drawn) => startOfDay(occurredAt);
  const isDirty = (event: Drawn) => {
    const others = drawn.filter((one) => one.ip === event.ip && dayOf(one) === dayOf(event) && !isIn(one));
    return new Set(others.map(({ ruleId }) => ruleId)).size >= 3;
  };
  const silenced = drawn.filter((event) => isIn(event) && isMatching(event));
  const isIdiom = ({ url, matched }: Drawn) =>
    url?.includes("union") === true || (isText && matched.includes("<script>"));
  return {
    events: silenced.length,
    addresses: new Set(silenced.map(({ ip }) => ip)).size,
    days: new Set(silenced.map(dayOf)).size,
    suspicious: silenced.filter((event) => isDirty(event) || isIdiom(event)).length,
  };
}

/** Counts what the platform's pattern `https://shop.example.test/reviews/*` finds. */
const isWritten = ({ url }: Drawn) => url?.startsWith("https://shop.example.test/reviews/") === true;
const isOnPath = ({ url }: Drawn) => /^https:\/\/shop\.example\.test\/reviews\/\d+(\?.*)?$/.test(url ?? "");
const isRule = ({ ruleId }: Drawn) => ruleId === RULE;
const isClause = (event: Drawn) => isRule(event) && isOnPath(event);

test("a replay over archive and database gives the numbers of a loop over the events", async () => {
  const found = await replay({ template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" });
  const isMatching = ({ method, parameter }: Drawn) => method === "POST" && parameter === "ARGS:title";
  const expected = count(events, isClause, isMatching, true);
  expect(expected.events).toBeGreaterThan(20);
  expect(expected.suspicious).toBeGreaterThan(0);
  expect(expected.suspicious).toBeLessThan(expected.events);
  const [rule, path] = [count(events, isRule), count(events, isWritten)];
  expect(found).toMatchObject({ isExact: true, silenced: expected, feature: "waf" });
  expect(found).toMatchObject({ ruleInZone: rule, everythingOnPath: path });
  expect(found.records).toBe(events.filter(isClause).length);
  expect(found.silenced.events).toBeLessThan(found.everythingOnPath?.events ?? 0);
});

test("the form for a path names the hosts of the clause's events, and is counted on these only", async () => {
  const at = NOW - DAY_MS;
  const on = (origin: string, ruleId: string, index: number) =>
    makeEvent({
      logId: `o${index}`,
      occurredAt: at + index,
      ruleId,
      ip: "192.0.2.9",
      url: `${origin}/own/1/x`,
    });
  const drawn = [
    { ...on("http://b.example.test:8080", RULE, 1), url: "http://b.example.test:8080/own/1" },
    { ...on("https://a.example.test", RULE, 2), url: "https://a.example.test/own/1" },
    { ...on("https://*", RULE, 3), url: "https://*/own/1" },
    on("https://a.example.test", "941100", 4),
    on("https://c.example.test", "941100", 5),
    on("https://*", "941100", 6),
  ];
  await world.store(drawn, { hasRecord: () => false, zoneId: 103 });
  const { origins, everythingOnPath } = await replay(
    { template: "/own/{n}", method: null, parameter: null },
    { from: at, to: NOW },
    103,
  );
  expect(origins).toEqual(["http://b.example.test:8080", "https://a.example.test"]);
  expect(everythingOnPath?.events).toBe(3);
  // The first segment is a visitor's own text, so the rule's events on other paths are not those of the template.
  const own = await replay({ template: "/{n}", method: null, parameter: null });
  expect(own.silenced.events).toBe(0);
  expect(own.everythingOnPath).toBeNull();
});

test("an authority that is no origin as a whole gives the form for a path no host", async () => {
  const authorities = [
    "https://sub_x.example.test",
    "https://user@www.example.test",
    "https://user:80@www.example.test",
    "https://www.example.test:8080x",
    "https://www.example.test..",
    String.raw`https://www.example.test\@b.example.test`,
    "https://www.example.test\n.b.example.test",
    "https://www.ex%61mple.test",
    "https://[2001:db8::1]",
  ];
  const at = NOW - DAY_MS;
  const drawn = authorities.map((authority, index) =>
    makeEvent({
      logId: `a${index}`,
      occurredAt: at,
      ruleId: RULE,
      ip: "192.0.2.9",
      url: `${authority}/none/1`,
    }),
  );
  await world.store(drawn, { hasRecord: () => false, zoneId: FORM_ZONE });
  const clause = { template: "/none/{n}", method: null, parameter: null };
  const found = await replay(clause, SPAN, FORM_ZONE);
  expect(found.silenced.events).toBe(authorities.length);
  expect(found).toMatchObject({ origins: [], everythingOnPath: null });
});

test("a clause without method and parameter silences every event of the rule on the path", async () => {
  const found = await replay({ template: "/reviews/{n}", method: null, parameter: null });
  expect(found.silenced).toEqual(count(events, isClause, undefined, true));
});

test("a clause for every path silences its parameter everywhere and has no path form", async () => {
  const found = await replay({ template: null, method: null, parameter: "ARGS:body" });
  expect(found.silenced).toEqual(count(events, isRule, ({ parameter }) => parameter === "ARGS:body", true));
  expect(found.everythingOnPath).toBeNull();
});

test("five samples show suspicious events first, with what their records say", async () => {
  const { samples } = await replay({ template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" });
  expect(samples).toHaveLength(5);
  const flags = samples.map(({ isSuspicious }) => isSuspicious);
  expect(flags[0]).toBe(true);
  expect(flags).toEqual(flags.toSorted((one, other) => Number(other) - Number(one)));
  for (const { method, parameter, at, ip, matched } of samples) {
    expect({ method, parameter }).toEqual({ method: "POST", parameter: "ARGS:title" });
    expect(matched).toBe(events.find((event) => event.occurredAt === at && event.ip === ip)?.matched);
  }
});

test("other rules of the same requests are named with their share", async () => {
  const at = NOW - 3 * DAY_MS;
  const url = "https://shop.example.test/bundle/1";
  const pairs = Array.from({ length: 20 }, (_, index) => [
    makeEvent({
      logId: `p${index}`,
      occurredAt: at + index * 2_000,
      ruleId: RULE,
      ip: `192.0.2.${index}`,
      url,
    }),
    ...(index < 5
      ? [
          makeEvent({
            logId: `q${index}`,
            occurredAt: at + index * 2_000,
            ruleId: "942200",
            ip: `192.0.2.${index}`,
            url,
          }),
        ]
      : []),
    makeEvent({
      logId: `r${index}`,
      occurredAt: at + index * 2_000,
      ruleId: "941100",
      ip: `192.0.2.${index + 100}`,
      url,
    }),
  ]);
  await world.store(pairs.flat(), { hasRecord: () => false, zoneId: OTHER_ZONE });
  const { together, records, isExact } = await replay(
    { template: "/bundle/{n}", method: "POST", parameter: null },
    { from: at, to: NOW },
    OTHER_ZONE,
  );
  expect(together).toEqual([{ ruleId: "942200", share: 0.25 }]);
  expect({ records, isExact }).toEqual({ records: 0, isExact: false });
});

test("more events than are sampled are scaled, and the answer says so", async () => {
  const at = NOW - 2 * DAY_MS;
  const many = Array.from({ length: 1_200 }, (_, index): Drawn => {
    const url = "https://shop.example.test/many/1";
    const event = makeEvent({
      logId: `m${index}`,
      occurredAt: at + index * 1_000,
      ruleId: RULE,
      ip: `10.0.0.${index % 250}`,
      url,
    });
    return { ...event, method: index % 4 === 0 ? "GET" : "POST", parameter: "ARGS:a", matched: "" };
  });
  await world.store(
    many.map(({ parameter: _p, matched: _t, ...event }) => event),
    { hasRecord: () => false, zoneId: OTHER_ZONE },
  );
  await storeRecords(many, OTHER_ZONE);
  const found = await replay(
    { template: "/many/{n}", method: "POST", parameter: null },
    { from: at, to: NOW },
    OTHER_ZONE,
  );
  expect(found.isExact).toBe(false);
  expect(found.ruleInZone.events).toBe(1_200);
  expect(Math.abs(found.silenced.events - 900)).toBeLessThan(90);
});

test("a replay of no events finds nothing", async () => {
  const { silenced, ruleInZone, everythingOnPath, samples, isExact } = await replay(
    { template: "/reviews/{n}", method: null, parameter: null },
    { from: START - DAY_MS, to: START },
  );
  const nothing = { events: 0, addresses: 0, days: 0, suspicious: 0 };
  expect({ silenced, ruleInZone, everythingOnPath, samples, isExact }).toEqual({
    silenced: nothing,
    ruleInZone: nothing,
    everythingOnPath: null,
    samples: [],
    isExact: true,
  });
});

const testWays = testBothWays(await loadSubject("exclusion"), () => ({ database: world.database, now: NOW }));
const TRY = ["try", "--zone", "101", "--rule", RULE, "--path", "/reviews/{n}", "--method", "post"];

testWays.both("exclusion try shows the figures, the samples and the forms", async ({ run }) => {
  const { code, out, err } = await run(...TRY, "--from", "-4d");
  expect(err).toBe("");
  expect(code).toBe(0);
  expect(out).toMatch(/^rule 942440 for POST \/reviews\/\{n\}, zone 101, /);
  expect(out).toMatch(/This exclusion +\d+ +\d+ +1 +\d+\nThe rule in the zone +[\d,]+ /);
  expect(out).toContain(`--data '{"ruleId":"942440","action":1}'`);
  expect(out).toContain('rules_logonly = ["942440"]');
});

testWays("a path of numbers is tried as its template", async ({ run }) => {
  const { out } = await run(
    "try",
    "--zone",
    "101",
    "--rule",
    RULE,
    "--path",
    "/reviews/12",
    "--from",
    "-4d",
    "--json",
  );
  expect(JSON.parse(out)).toMatchObject({ clause: `rule ${RULE} for /reviews/{n}`, zone: 101 });
});

testWays.both("every mistake names field, value and rule", async ({ run }) => {
  const wrong = await run("try", "--zone", "101", "--rule", RULE, "--path", "reviews?x", "--method", "P T");
  expect(wrong.code).toBe(2);
  expect(wrong.err).toContain('--path "reviews?x" must be a path');
  expect(wrong.err).toContain('--method "P T" must be a method');
  for (const [args, text] of [
    [["--rule", "949110", "--path", "/a"], '--rule "949110" cannot be excluded'],
    [["--rule", RULE], "--path must be given"],
    [["--rule", RULE, "--path", "/"], "--path must be given"],
  ] as const) {
    const { code, err } = await run("try", "--zone", "101", ...args);
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(text) as string });
  }
  const zoneless = await run("try", "--rule", RULE, "--path", "/a");
  expect(zoneless).toMatchObject({ code: 2, err: expect.stringContaining("--zone is missing") });
});

test("a masked key sees no address and no matched text, and a key of another zone nothing", async () => {
  const { url } = await startArchive(world.database.url, {}, { clock: () => NOW }, { files: folder.files });
  const masked = await makeKey(world.database, "reader", { isMasked: true });
  const address = `${url}/api/v1/exclusions/replay?zone=101&rule=${RULE}&path=/reviews/{n}&method=POST`;
  const answer = await fetch(address, { headers: { AccessKey: masked.key } });
  expect(answer.status).toBe(200);
  const text = await answer.text();
  expect(text).not.toMatch(/203\.0\.113\.\d|198\.51\.100\.\d|script|fine/);
  expect(JSON.parse(text)).toMatchObject({
    samples: [{ matched: null, ip: expect.stringMatching(/\*$/) as string }, {}, {}, {}, {}],
  });
  const foreign = await makeKey(world.database, "reader", { zoneIds: [102] });
  expect((await fetch(address, { headers: { AccessKey: foreign.key } })).status).toBe(403);
});

test("a masked key sees no form that masking would change into another pattern, and how many there are", async () => {
  const at = NOW - DAY_MS / 2;
  const paths = ["/ip/203.0.113.9/edit", "/a:::", "/plain/x"];
  const drawn = paths.map((path, index) =>
    makeEvent({
      logId: `f${index}`,
      occurredAt: at,
      ruleId: RULE,
      ip: "192.0.2.9",
      url: `https://h.example${path}`,
    }),
  );
  await world.store(drawn, { hasRecord: () => false, zoneId: FORM_ZONE });
  const { url } = await startArchive(world.database.url, {}, { clock: () => NOW }, { files: folder.files });
  const [masked, open] = [
    await makeKey(world.database, "reader", { isMasked: true }),
    await makeKey(world.database, "reader"),
  ];
  const ask = async (path: string, { key }: { key: string }) => {
    const asked = `${url}/api/v1/exclusions/replay?zone=${FORM_ZONE}&rule=${RULE}&path=${encodeURIComponent(path)}`;
    const answer = await fetch(asked, { headers: { AccessKey: key } });
    const { forms, hiddenForms } = (await answer.json()) as {
      forms: { reach: string; text: string }[];
      hiddenForms: number;
    };
    return { reaches: forms.map(({ reach }) => reach), texts: forms.map(({ text }) => text), hiddenForms };
  };
  for (const path of paths) {
    const whole = await ask(path, open);
    expect(whole).toMatchObject({ reaches: ["clause", "rule", "rule", "path"], hiddenForms: 0 });
    const shown = await ask(path, masked);
    for (const text of shown.texts) expect(whole.texts).toContain(text);
    expect(shown).toMatchObject(path === "/plain/x" ? whole : { reaches: ["rule", "rule"], hiddenForms: 2 });
  }
});

test("a masked key is told which proposed exclusions it cannot try, in the list and in a verdict", async () => {
  const clauses = ["/ip/203.0.113.9/edit", "/reviews/{n}"].map((template) => {
    return { ruleIds: [RULE], template, method: "POST", parameter: "ARGS:title" };
  });
  const numbers = { covered: 1, events: 9, together: [] };
  const narrow = { form: "narrow" as const, ruleId: RULE, ...numbers, refusal: null };
  const proposal = { ...narrow, clauses };
  await storeProposal(world.database.db, { zoneId: FORM_ZONE, spikeId: null, proposal, now: NOW });
  const { url } = await startArchive(world.database.url, {}, { clock: () => NOW }, { files: folder.files });
  const list = async (isMasked: boolean) => {
    const { key } = await makeKey(world.database, "reader", { isMasked });
    const answer = await fetch(`${url}/api/v1/exclusions?zone=${FORM_ZONE}`, { headers: { AccessKey: key } });
    const { items } = (await answer.json()) as { items: { template: string; isHidden: boolean }[] };
    return items.map(({ template, isHidden }) => ({ template, isHidden }));
  };
  const [first, second] = clauses.map(({ template }) => ({ template, isHidden: false }));
  expect(await list(false)).toEqual(expect.arrayContaining([first, second]));
  const hidden = { template: "/ip/203.0.113.*/edit", isHidden: true };
  expect(await list(true)).toEqual(expect.arrayContaining([hidden, second]));

  const verdict = { sample: null, exclusion: proposal };
  const refusal = "Not shown: an address is in it, which your key does not see.";
  expect(maskVerdict(verdict).exclusion).toEqual({ ...narrow, clauses: [], refusal });
  const open = { ...proposal, clauses: clauses.slice(1) };
  expect(maskVerdict({ ...verdict, exclusion: open }).exclusion).toEqual(open);
});
