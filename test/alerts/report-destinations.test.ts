import { pino } from "pino";
import { beforeEach, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import { noteFailure, noteSeen, noteSuccess } from "#db/delivery/forwarding/forward-destinations.ts";
import { storeAnswer } from "#db/delivery/forwarding/forward-receipts.ts";
import { raiseExamined } from "#jobs/alerts/raise-self.ts";
import { examine, openScope } from "#jobs/health/conditions/condition.ts";
import { DELIVERY_CONDITIONS } from "#jobs/health/conditions/delivery.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { toReceipt } from "#model/waf-event.ts";
import { openAlertWorld } from "./alert-world.ts";

const { database, world } = await openAlertWorld();

beforeEach(async () => {
  await database.pool.query(
    "truncate forward_destinations, forward_hours, forward_refusals, forward_receipts",
  );
  await noteSeen(database.db, "siem");
});

/** Reports some minutes from now on. Returns the messages of the report. */
async function reportIn(minutes: number, configured = ["siem"]): Promise<string[]> {
  const nowMs = Date.now() + minutes * MINUTE_MS;
  const context = { routing: routeToAll(["chat"]), silences: [], nowMs };
  const alerting = {
    database,
    log: pino({ level: "silent" }),
    routeOf: (subject: Parameters<typeof routeSelf>[1]) => routeSelf(context, subject),
  };
  const before = (await world.messages()).length;
  const scope = openScope({ db: database.db, nowMs, zoneIds: [], destinations: configured });
  const conditions = DELIVERY_CONDITIONS.filter(({ of }) => of === "destination");
  await raiseExamined(alerting, await examine(scope, conditions));
  const sent = (await world.messages()).slice(before);
  return sent.map(({ reason, message }) => `${reason}: ${message.headline}`);
}

const fail = (isRefused: boolean) =>
  noteFailure(database.db, "siem", { pauseMs: 0, isRefused, error: "siem.example answered 503" });

test("a destination that fails for a quarter of an hour is one alert, and resolves when it accepts events again", async () => {
  await fail(false);
  expect(await reportIn(10)).toEqual([]);
  expect(await reportIn(16)).toEqual([
    expect.stringMatching(
      /^first: Destination siem has accepted no events since .* UTC: siem\.example answered 503\. See whether the receiver is up\. The events wait in Longwatch, and none is lost$/,
    ),
  ]);
  for (let times = 0; times < 5; times += 1) await fail(false);
  expect(await reportIn(60)).toEqual([]);
  await noteSuccess(database.db, "siem");
  expect(await reportIn(61)).toEqual([
    "resolved: Destination siem works again: it accepts events, and no hour differs",
  ]);
  expect(await reportIn(62)).toEqual([]);
});

test("a wrong token is an alert at once", async () => {
  await fail(true);
  expect(await reportIn(0)).toEqual([
    expect.stringContaining("Correct it in the configuration file or at the receiver"),
  ]);
});

test("the alert names the gravest of differing hours and refused events, and the command that lists them", async () => {
  const zone = { destination: "siem", zoneId: 101 };
  const occurredAt = Date.UTC(2026, 10, 20, 10, 5);
  const refused = {
    occurredAt,
    logId: "a",
    receipt: toReceipt({ occurredAt, logId: "a" }, []),
    reason: "no field ip",
  };
  const span = { firstAt: occurredAt, lastAt: occurredAt };
  await storeAnswer(database.db, zone, { ...span, receipts: [], first: 0, refused: [refused] });
  expect(await reportIn(0)).toEqual([
    expect.stringMatching(
      /^first: Destination siem has refused 1 event, for example because: no field ip\. .*forward refused siem/,
    ),
  ]);
  await database.pool.query("update forward_hours set arrival = 'differs', proven_at = now()");
  // One alert for the destination: its headline changes, nobody is notified again.
  expect(await reportIn(1)).toEqual([]);
  const [alert] = await world.alerts();
  expect(JSON.stringify(alert?.details)).toContain("does not have all events of 1 hour");
  await database.pool.query("update forward_hours set arrival = 'arrived'");
  await database.pool.query("truncate forward_refusals");
  expect(await reportIn(2)).toEqual([
    "resolved: Destination siem works again: it accepts events, and no hour differs",
  ]);
});

test("the alert of a destination that is not configured any more resolves", async () => {
  await fail(true);
  await reportIn(0);
  expect(await reportIn(1, [])).toEqual(["resolved: Destination siem is not configured any more"]);
});
