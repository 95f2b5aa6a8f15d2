import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import { type AlertRow, takeOverAlert } from "#db/alerts/alerts.ts";
import { alerts } from "#db/schema/alerts.ts";
import { spikes } from "#db/schema/spikes.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf } from "./incident.ts";

const { database, world } = await openAlertWorld();

/** A rule of which people were notified, and an incident that explains it. Nobody has taken the alert over. */
async function openBoth(): Promise<{ rule: number; incident: number; alert: AlertRow }> {
  const rule = await world.openSpike(0);
  await world.runAt(1);
  const incident = await world.openSpike(2, incidentOf(attackerOf("203.0.113.1", 2)));
  const [alert] = await world.alerts();
  if (alert === undefined) throw new Error("no alert");
  return { rule, incident, alert };
}

async function readBoth() {
  const [alert] = await world.alerts();
  const taken = (await world.spikes()).map(({ takesOver }) => takesOver);
  return { spikeId: alert?.spikeId, taken };
}

test("of ten replicas that take the alert of a rule over at once, one does", async () => {
  const { incident, alert } = await openBoth();
  const results = await Promise.all(
    Array.from({ length: 10 }, () => takeOverAlert(database, incident, alert)),
  );
  expect(results.filter(Boolean)).toHaveLength(1);
  expect(await readBoth()).toEqual({ spikeId: incident, taken: [null, alert.fingerprint] });
  expect(await takeOverAlert(database, incident, alert)).toBe(false);
});

test.each<[string, (given: Awaited<ReturnType<typeof openBoth>>) => Promise<unknown>]>([
  [
    "the alert has moved since",
    ({ alert }) => database.db.update(alerts).set({ transition: alert.transition + 1 }),
  ],
  ["the alert was acknowledged since", () => database.db.update(alerts).set({ state: "acknowledged" })],
  ["the alert is gone", () => database.db.delete(alerts)],
  ["the incident has closed", ({ incident }) => world.closeSpike(incident, 3)],
  [
    "the incident has taken another alert over",
    ({ incident }) => database.db.update(spikes).set({ takesOver: "other" }).where(eq(spikes.id, incident)),
  ],
])("no alert is taken over if %s", async (_what, change) => {
  const given = await openBoth();
  await change(given);
  const before = await readBoth();
  expect(await takeOverAlert(database, given.incident, given.alert)).toBe(false);
  expect(await readBoth()).toEqual(before);
});

test("two replicas go on with the alert of a rule once, and notify once of what the incident changes", async () => {
  const { rule, incident } = await openBoth();
  await database.db.update(spikes).set({ memberOf: incident }).where(eq(spikes.id, rule));
  for (const minutes of [3, 4, 9]) await Promise.all([world.runAt(minutes), world.runAt(minutes)]);
  // A replica that sees the take-over late may store a transition in between that no channel is sent.
  const sent = (await world.outbox()).map((row) => row.replace(/^\d+ /, ""));
  expect(sent).toEqual(["first chat", "first pager", "worse chat", "worse pager"]);
  expect(await world.alerts()).toMatchObject([{ spikeId: incident, state: "firing", firedAt: at(0) }]);
});
