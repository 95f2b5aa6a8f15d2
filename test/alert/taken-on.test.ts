import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { spikes } from "../../db/schema/spikes.ts";
import { acknowledgeByHand, resolveAlert } from "../../jobs/act-on-alert.ts";
import { routeToAll } from "../../src/routing/routing.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { at, createAlertWorld } from "./alert-world.ts";

let database: MigratedDatabase;
let world: ReturnType<typeof createAlertWorld>;
beforeAll(async () => {
  database = await createMigratedDatabase();
  world = createAlertWorld(database);
});
afterAll(() => database.drop());
beforeEach(() => world.clear());

const act = async (minutes: number) => {
  const [alert] = await world.alerts();
  return { alertId: alert?.id ?? 0, by: "alice", note: null, atMs: at(minutes).getTime() };
};

test("an alert whose counts were brought up to date is acknowledged and resolved with its links", async () => {
  const links = [{ title: "Runbook", url: "https://wiki.example.com/{rule}", matchers: {} }];
  const routing = () => ({ ...routeToAll(["chat"]), links });
  await world.openSpike();
  await world.runAt(1, { routing });
  await database.db.update(spikes).set({ windowCount: 999_999, peak: 999_999 });
  await world.runAt(2, { routing });
  await acknowledgeByHand(database, await act(3));
  await resolveAlert(database, await act(4));
  const told = (await world.messages()).map(({ message }) => `${message.reason} ${message.links.length}`);
  expect(told).toEqual(["first 1", "acknowledged 1", "resolved 1"]);
});

test("a rise that waited rings nobody once a person has taken the alert on; a later one does", async () => {
  await world.openSpike();
  await world.runAt(1, { channels: ["chat"] });
  await database.db.update(spikes).set({ severity: "error" });
  await world.runAt(2, { channels: ["chat"] });
  await acknowledgeByHand(database, await act(3));
  await world.runAt(7, { channels: ["chat"] });
  expect(await world.outbox()).toEqual(["1 first chat", "3 acknowledged chat"]);
  await database.db.update(spikes).set({ severity: "critical" });
  await world.runAt(8, { channels: ["chat"] });
  expect(await world.outbox()).toEqual(["1 first chat", "3 acknowledged chat", "4 worse chat"]);
});
