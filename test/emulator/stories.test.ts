import { expect, test } from "vitest";
import { HOUR_MS } from "#lib/units.ts";
import { NOW, type OracleEvent, openEmulator, oracle } from "./support.ts";

interface Shown {
  readonly event: OracleEvent;
  readonly key: string;
  readonly match: string;
  readonly headers: ReadonlyMap<string, string>;
}

async function script(kind: string, seed = "stories") {
  const emulator = await openEmulator({ eventsPerSecond: 0.001, seed });
  emulator.addAttack(`kind=${kind},zone=101,start=+1m,duration=1h,rate=10/m`);
  emulator.advance(2 * HOUR_MS);
  return (await oracle(emulator, 101))
    .filter(({ timestamp }) => timestamp >= NOW + 60_000)
    .flatMap((event): Shown[] => {
      const log = event.log as {
        TriggerMatch: { Key: string; Value: string };
        Headers: { Name: string; Value: string }[];
      };
      const headers = new Map(log.Headers.map(({ Name, Value }) => [Name, Value]));
      const { Key: key, Value: match } = log.TriggerMatch;
      return headers.has("Accept") ? [{ event, key, match, headers }] : [];
    });
}

const share = (all: readonly Shown[], isSo: (one: Shown) => boolean) => all.filter(isSo).length / all.length;
const different = (all: readonly Shown[], of: (one: Shown) => unknown) => new Set(all.map(of)).size;

test("the rules of a misfire match the same request of a visitor with a session and an own referer", async () => {
  const shown = await script("misfire-rich-text");
  const requests = [...Map.groupBy(shown, ({ headers }) => headers.get("CDN-RequestId")).values()];
  expect(requests).toHaveLength(200);
  for (const all of requests) {
    expect(new Set(all.map(({ event }) => event.ruleId))).toEqual(new Set(["941320", "942430", "942130"]));
    expect(different(all, ({ event: { timestamp, ip, url, ua } }) => `${timestamp} ${ip} ${url} ${ua}`)).toBe(
      1,
    );
    expect(different(all, ({ match }) => match)).toBe(1);
  }
  expect(different(shown, ({ event }) => event.ip)).toBeGreaterThan(150);
  expect(new Set(shown.map(({ key }) => key))).toEqual(new Set(["ARGS:content"]));
  expect(share(shown, ({ event }) => /\/forum\/topics\/\d+\/posts$/.test(event.url))).toBe(1);
  const hasOwn = ({ headers }: Shown) => headers.get("Referer") === `https://${headers.get("Host")}/`;
  for (const part of [share(shown, ({ headers }) => headers.has("Cookie")), share(shown, hasOwn)]) {
    expect(part).toBeGreaterThan(0.7);
    expect(part).toBeLessThan(0.95);
  }
});

test("the senders of a misfire trigger nothing else, and have browsers", async () => {
  const emulator = await openEmulator({ seed: "stories", historyHours: 24 });
  for (const kind of ["misfire-rich-text", "misfire-back-office"])
    emulator.addAttack(`kind=${kind},zone=101,start=+1m,duration=1h,rate=10/m`);
  emulator.advance(2 * HOUR_MS);
  const events = await oracle(emulator, 101);
  const isOf = ({ url }: OracleEvent) => /\/forum\/topics\/|\/admin\/articles\//.test(url);
  const senders = new Set(events.filter(isOf).map(({ ip }) => ip));
  expect(senders.size).toBeGreaterThan(150);
  expect(events.filter((event) => senders.has(event.ip) && !isOf(event))).toEqual([]);
  expect(new Set(events.filter(isOf).map(({ ua }) => ua.slice(0, 12)))).toEqual(new Set(["Mozilla/5.0 "]));
});

test("each kind has the headers and the variable of its sender", async () => {
  const of = Object.fromEntries(
    await Promise.all(
      ["misfire-cookie", "misfire-upload", "misfire-partner", "misfire-api", "search-engine"].map(
        async (kind) => [kind, await script(kind)] as const,
      ),
    ),
  );
  const every = (kind: string, isSo: (one: Shown) => boolean) => expect(share(of[kind] ?? [], isSo)).toBe(1);
  every("misfire-cookie", ({ key, match, headers }) => {
    return key === "REQUEST_COOKIES:consent" && (headers.get("Cookie") ?? "").includes(`consent=${match}`);
  });
  every("misfire-upload", ({ headers }) =>
    (headers.get("Content-Type") ?? "").startsWith("multipart/form-data"),
  );
  every("misfire-partner", ({ headers }) => (headers.get("Authorization") ?? "").startsWith("Bearer "));
  every("misfire-api", ({ headers }) => headers.get("Content-Type") === "application/json");
  every("search-engine", ({ event }) => event.ua.includes("bot"));
  expect(different(of["misfire-partner"] ?? [], ({ event }) => event.ip)).toBe(2);
});

test("attacks have no session, and a stuck client repeats one request", async () => {
  for (const kind of ["exploit", "browser-botnet", "credential-stuffing", "deep-scan", "probe"]) {
    const shown = await script(kind);
    expect(shown.length).toBeGreaterThan(500);
    expect(share(shown, ({ headers }) => headers.has("Cookie") || headers.has("Authorization"))).toBe(0);
  }
  const stuck = await script("stuck-client");
  expect(different(stuck, ({ event }) => `${event.ip} ${event.url}`)).toBe(1);
  expect(different(await script("deep-scan"), ({ event }) => new URL(event.url).pathname)).toBeGreaterThan(
    80,
  );
});

test("a seed draws the same requests again, and another seed draws others", async () => {
  const ids = async (seed: string) => (await script("misfire-form", seed)).map(({ event }) => event);
  const [first, again, other] = [await ids("a"), await ids("a"), await ids("b")];
  expect(again).toEqual(first);
  expect(other).not.toEqual(first);
});
