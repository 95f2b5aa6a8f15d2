import { eq } from "drizzle-orm";
import { pino } from "pino";
import { afterAll, beforeEach } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import type { Database } from "#db/client.ts";
import { advice, alerts, silences } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createRaiseAlertsJob, type RaiseAlertsDeps } from "#jobs/alerts/raise-alerts.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { alertMessage } from "#model/alert-message.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { insertSpike } from "./insert-spike.ts";
import { EVERYDAY, NOW } from "./support.ts";

export const at = (minutes: number) => new Date(NOW + minutes * MINUTE_MS);

/** The database and the alerts of a test file, which are cleared before each test. */
export async function openAlertWorld() {
  const database = await createMigratedDatabase();
  afterAll(() => database.drop());
  const world = createAlertWorld(database);
  beforeEach(() => world.clear());
  return { database, world };
}

/** The job and the rows around it; every time is in minutes after NOW. */
export function createAlertWorld(database: Database) {
  const { db } = database;
  const never = new AbortController().signal;
  const readOutbox = () => db.select().from(notifications).orderBy(notifications.id);
  return {
    async clear(): Promise<void> {
      for (const table of [alerts, advice, spikes, silences]) await db.delete(table);
    },
    async runAt(
      minutes: number,
      over: Partial<RaiseAlertsDeps> & { channels?: readonly string[] } = {},
    ): Promise<void> {
      const clock = () => NOW + minutes * MINUTE_MS;
      const deps = {
        database,
        clock,
        routing: () => routeToAll(over.channels ?? ["chat", "pager"]),
        zoneIds: [101],
        afterAlerts: async () => {},
        ...over,
      };
      await createRaiseAlertsJob({ log: pino({ level: "silent" }), ...deps }).run({} as never, never);
    },
    openSpike: (minutes = 0, over: Partial<Parameters<typeof insertSpike>[1]> = {}) =>
      insertSpike(db, { openedAt: at(minutes), ...over }),
    async closeSpike(id: number, minutes: number): Promise<void> {
      await db
        .update(spikes)
        .set({ closedAt: at(minutes), windowCount: EVERYDAY })
        .where(eq(spikes.id, id));
    },
    async answer(minutes: number, errorKey: string | null = null): Promise<void> {
      const success = errorKey === null;
      const text = success ? "Keep the rule enabled." : null;
      const askedAt = at(minutes);
      await db.insert(advice).values({ zoneId: 101, ruleId: "942100", askedAt, success, text, errorKey });
    },
    async silence(matchers: unknown, minutes: number): Promise<void> {
      const row = { startsAt: at(-60), expiresAt: at(minutes), createdBy: "test", reason: "test", matchers };
      await db.insert(silences).values(row);
    },
    spikes: () => db.select().from(spikes).orderBy(spikes.id),
    alerts: () => db.select().from(alerts).orderBy(alerts.id),
    /** Returns the rows of the outbox as `transition reason channel`. */
    async outbox(): Promise<string[]> {
      const rows = await readOutbox();
      return rows.map(({ transition, reason, channel }) => `${transition} ${reason} ${channel}`);
    },
    async messages() {
      const rows = await readOutbox();
      return rows.map((row) => ({ ...row, message: alertMessage.parse(row.content) }));
    },
  };
}
