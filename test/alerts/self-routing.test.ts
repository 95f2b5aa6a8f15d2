import { pino } from "pino";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { type AlertRecord, NOBODY, nextAlert } from "#alerts/rules/alert-record.ts";
import { DEFAULT_TIMING, type Route, type Routing, routeToAll } from "#alerts/rules/routing/routing.ts";
import { avoidFailing, reasonOf, routeSelf } from "#alerts/rules/self-alert.ts";
import { silences } from "#db/schema/alerts.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { type DeliverWorld, openDeliverWorld, type Receiver } from "../delivery/deliver-world.ts";

const route = (over: Partial<Route>): Route => ({
  matchers: {},
  channels: [],
  timing: DEFAULT_TIMING,
  continue: false,
  routes: [],
  ...over,
});
const CHANNELS = ["chat", "pager", "ops", "night"];
const ROUTING: Routing = {
  channels: CHANNELS,
  root: route({
    channels: ["chat"],
    routes: [
      route({ matchers: { kind: ["self"], severity: ["critical"] }, channels: ["pager"], continue: true }),
      route({ matchers: { kind: ["self"], zone: [101] }, channels: ["night"], continue: true }),
      route({ matchers: { kind: ["self"] }, channels: ["ops"] }),
      route({ matchers: { kind: ["spike"] }, channels: ["pager"] }),
    ],
  }),
  inhibitions: [],
  quietHours: [],
  links: [],
  fewAddresses: 3,
};
const nowMs = Date.UTC(2026, 10, 21, 15);
const given = { routing: ROUTING, silences: [], nowMs };

test("an alert about Longwatch itself goes to the routes of its kind, or to the root route if there is none", () => {
  expect(routeSelf(given, { zoneId: null, severity: "error" }).channels).toEqual(["ops"]);
  expect(routeSelf(given, { zoneId: null, severity: "critical" }).channels).toEqual(["pager", "ops"]);
  expect(routeSelf(given, { zoneId: 101, severity: "critical" }).channels).toEqual(["pager", "night", "ops"]);
  const others = { ...ROUTING, root: route({ ...ROUTING.root, routes: ROUTING.root.routes.slice(3) }) };
  expect(routeSelf({ ...given, routing: others }, { zoneId: 101, severity: "error" }).channels).toEqual([
    "chat",
  ]);
});

test.each(["tell", "hold"] as const)(
  "quiet hours do not delay an alert about Longwatch itself (critical: %s)",
  (critical) => {
    const always = {
      timeZone: "UTC",
      days: WEEKDAYS,
      fromMinute: 0,
      toMinute: 1_439,
      channels: null,
      matchers: {},
      critical,
    };
    const quiet = { ...given, routing: { ...ROUTING, quietHours: [always] } };
    expect(routeSelf(quiet, { zoneId: null, severity: "critical" }).channels).toEqual(["pager", "ops"]);
    expect(routeSelf(quiet, { zoneId: null, severity: "error" }).channels).toEqual(["ops"]);
  },
);

test("a silence of the kind `self` mutes it; a silence of another kind or zone does not", () => {
  const silenced = (matchers: object) => {
    const one = { id: 7, startsAtMs: nowMs, expiresAtMs: nowMs + 1, matchers };
    return routeSelf({ ...given, silences: [one] }, { zoneId: 101, severity: "critical" }).silencedBy;
  };
  expect(silenced({ kind: ["self"] })).toBe(7);
  expect(silenced({ kind: ["spike"] })).toBeNull();
  expect(silenced({ kind: ["self"], zone: [102] })).toBeNull();
  expect(silenced({ kind: ["self"], severity: ["critical"] })).toBe(7);
  // A load test on a zone is no reason to miss a gap in it.
  expect(silenced({ zone: [101] })).toBeNull();
});

test("if a channel fails, the other channels of its route are notified, or every working channel if there is none", () => {
  const own = routeSelf(given, { zoneId: null, severity: "critical" });
  expect(avoidFailing(own, CHANNELS, new Set(["pager"])).channels).toEqual(["ops"]);
  expect(avoidFailing(own, CHANNELS, new Set(["pager", "ops"])).channels).toEqual(["chat", "night"]);
});

test("a rise that a silence muted is notified of after the silence, once", () => {
  const occurrence = { id: null, severity: "warning", openedAtMs: nowMs } as const;
  const notified = { ...NOBODY, notified: ["ops"] };
  const warned = nextAlert(null, { reason: "first", occurrence, recipients: notified, nowMs });
  const worse = { reason: "worse", occurrence: { ...occurrence, severity: "error" }, nowMs } as const;
  const mute = { silencedBy: 7, mutedBy: null };
  const muted = nextAlert(warned, { ...worse, recipients: NOBODY, mute });
  const reasonAfter = (alert: AlertRecord) => {
    const news = { reason: "none", severity: "error", headline: "", openedAtMs: nowMs } as const;
    return reasonOf(news, alert, routeSelf(given, { zoneId: 101, severity: "error" }));
  };
  expect(reasonAfter(muted)).toBe("worse");
  expect(reasonAfter(nextAlert(muted, { ...worse, recipients: notified }))).toBe("none");
});

let database: MigratedDatabase;
let receiver: Receiver;
let world: DeliverWorld;

beforeAll(async () => {
  const opened = await openDeliverWorld();
  ({ database, receiver, world } = opened);
  return opened.close;
});
beforeEach(async () => {
  await world.clear();
  await database.db.delete(silences);
});

const sent = () =>
  receiver.received
    .filter(({ message }) => message.kind === "self")
    .map(({ channel, message }) => `${channel} ${message.reason}`);
const run = () => world.run(CHANNELS, { routing: () => ROUTING, log: pino({ level: "silent" }) });

test("a failing channel notifies the routes of its kind, and so does its recovery", async () => {
  await world.raise(["first"], ["chat"]);
  receiver.status("chat", 410);
  await run();
  expect(sent()).toEqual(["ops first"]);
  receiver.status("chat", 204);
  await world.pass(16 * MINUTE_MS);
  await world.raise(["first"], ["chat"]);
  await run();
  await run();
  expect(sent()).toEqual(["ops first", "ops resolved"]);
});

test("under a silence no channel is notified, and each is notified once after it", async () => {
  const row = { createdBy: "test", reason: "test", matchers: { kind: ["self"] } };
  const [startsAt, expiresAt] = [new Date(Date.now() - MINUTE_MS), new Date(Date.now() + 60 * MINUTE_MS)];
  await database.db.insert(silences).values({ ...row, startsAt, expiresAt });
  await world.raise(["first"], ["chat"]);
  receiver.status("chat", 410);
  await run();
  await run();
  expect(sent()).toEqual([]);
  expect((await world.alerts()).filter(({ kind }) => kind === "self")).toMatchObject([{ state: "firing" }]);
  await database.db.delete(silences);
  await run();
  await run();
  expect(sent()).toEqual(["ops first"]);
});

test("a channel that works again after all had failed is notified that another still fails", async () => {
  const channels = ["chat", "pager"];
  const both = () =>
    world.run(channels, { routing: () => routeToAll(channels), log: pino({ level: "silent" }) });
  await world.raise(["first"], channels);
  for (const channel of channels) receiver.status(channel, 500);
  await both();
  await world.pass(16 * MINUTE_MS);
  await both();
  receiver.reset();
  receiver.status("chat", 500);
  for (let round = 0; round < 3; round += 1) {
    await world.pass(20 * MINUTE_MS);
    await both();
  }
  expect(sent().filter((line) => !line.endsWith("resolved"))).toEqual(["pager first"]);
});

test("an alert about a channel ends when the channel is taken out of the configuration", async () => {
  await world.raise(["first"], ["chat"]);
  receiver.status("chat", 410);
  await run();
  expect(sent()).toEqual(["ops first"]);
  const others = { ...ROUTING, channels: CHANNELS.slice(1) };
  const without = () => world.run(others.channels, { routing: () => others, log: pino({ level: "silent" }) });
  await without();
  await without();
  expect(sent()).toEqual(["ops first", "ops resolved"]);
});
