import { expect, test } from "vitest";
import { loki } from "#delivery/receivers/sinks/loki.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type LokiOptions, startLokiReceiver } from "../../support/receivers/loki-receiver.ts";
import { eventOf, HOUR, sending, withReceiver, ZONE } from "./world.ts";

async function openLoki(
  limits: LokiOptions = {},
  over: { tenant?: string; structuredMetadata?: boolean; now?: number } = {},
) {
  const { now = HOUR + 2_000, ...settings } = over;
  const receiver = await startLokiReceiver(limits);
  const { sink } = withReceiver(receiver, (url) =>
    loki.open({
      name: "siem",
      clock: () => now,
      network: { allowPrivateNetworks: true },
      url: `${url}/`,
      structuredMetadata: true,
      ...settings,
    }),
  );
  return { receiver, sink };
}

test("a label is never a visitor's text: labels are the zone and the class of the action", async () => {
  const { receiver, sink } = await openLoki();
  const hostile = '"}],"x":{\n\ud800\u0000';
  const fields = { action: "block", ruleId: "942100", ip: "203.0.113.7", country: hostile, ua: hostile };
  await sink.send(
    [
      eventOf("a", { ua: hostile }, { fields }),
      eventOf("b", {}, { fields: { action: `challenge${hostile}` } }),
      eventOf("c", {}, { fields: { action: "Blocked" } }),
    ],
    sending(),
  );
  const labels = { service_name: "longwatch", zone: String(ZONE) };
  expect(receiver.entries.map(({ id, labels }) => [id, labels])).toEqual([
    [`${ZONE}-a`, { ...labels, action: "blocked" }],
    [`${ZONE}-c`, { ...labels, action: "blocked" }],
    [`${ZONE}-b`, { ...labels, action: "other" }],
  ]);
  expect(receiver.entries[0]).toMatchObject({
    atMs: HOUR + 1_234,
    line: JSON.stringify({ id: `${ZONE}-a`, ua: hostile }),
    metadata: {
      longwatch_id: `${ZONE}-a`,
      rule: "942100",
      ip: "203.0.113.7",
      country: hostile.toWellFormed(),
    },
  });
});

test("a backlog that is sent after newer events is not too far behind", async () => {
  const { receiver, sink } = await openLoki({ maxBehindMs: HOUR_MS });
  const at = (minutes: number) =>
    eventOf(`m${minutes}`, {}, { occurredAt: HOUR + 1_000 - minutes * MINUTE_MS });
  await sink.send([at(0), at(29)], sending());
  const backlog = [at(600), at(241), at(239), at(90), at(31)];
  expect(await sink.send(backlog, sending())).toMatchObject({ refused: [] });
  expect(receiver.stored.size).toBe(7);
  expect(receiver.entries.map(({ labels }) => labels["late_hour"])).toEqual([
    undefined,
    undefined,
    "2026-11-21T04",
    "2026-11-21T09",
    "2026-11-21T10",
    "2026-11-21T12",
    "2026-11-21T13",
  ]);
});

test("lines that Loki calls too old are refused together, with the oldest time that it takes", async () => {
  const { receiver, sink } = await openLoki({ oldestMs: HOUR - 7 * DAY_MS });
  const old = Array.from({ length: 300 }, (_, at) =>
    eventOf(`old${at}`, {}, { occurredAt: HOUR - 8 * DAY_MS + at }),
  );
  const answer = await sink.send([...old, eventOf("a"), eventOf("b")], sending());
  expect(answer.refused).toHaveLength(300);
  expect(answer.refused[0]).toEqual({
    index: 0,
    reason: "answered 400: too old, 2026-11-14T14:00:00.000Z is the oldest time that Loki takes",
  });
  expect([...receiver.stored.keys()]).toEqual([`${ZONE}-a`, `${ZONE}-b`]);
  expect(receiver.requests).toHaveLength(2);
});

test("a line that is longer than Loki's limit is refused with Loki's reason, and the others arrive once", async () => {
  const { receiver, sink } = await openLoki({ maxLineBytes: 256 * 1_024 });
  const events = [eventOf("a"), eventOf("long", { text: "x".repeat(300_000) }), eventOf("b")];
  expect(await sink.send(events, sending())).toMatchObject({
    refused: [
      { index: 1, reason: expect.stringContaining("answered 400: Max entry size '262144' bytes exceeded") },
    ],
  });
  expect(receiver.entries.map(({ id }) => id)).toEqual([`${ZONE}-a`, `${ZONE}-b`]);
});

test("an event that is sent twice is one line, and a tenant's is the tenant's", async () => {
  const { receiver, sink } = await openLoki({ tenant: "shop|blog" }, { tenant: "shop|blog" });
  await sink.send([eventOf("a")], sending());
  await sink.send([eventOf("a")], sending());
  expect(receiver.entries).toHaveLength(1);
});

test("a Loki that takes no structured metadata gets none if the setting says so", async () => {
  const { sink } = await openLoki({ takesMetadata: false });
  expect(await sink.send([eventOf("a")], sending())).toMatchObject({
    refused: [{ index: 0, reason: expect.stringContaining("structured metadata") }],
  });
  const { receiver, sink: plain } = await openLoki({ takesMetadata: false }, { structuredMetadata: false });
  await plain.send([eventOf("a")], sending());
  expect(receiver.entries).toMatchObject([{ id: `${ZONE}-a`, metadata: {} }]);
});
