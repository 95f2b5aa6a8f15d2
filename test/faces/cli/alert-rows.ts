import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { auditEntries } from "#db/schema/people.ts";
import { createAlertWorld } from "../../alerts/alert-world.ts";
import type { MigratedDatabase } from "../../db/migrated-database.ts";

/** A database with alerts as the service raises them, and what became of them. */
export function openAlertRows(database: MigratedDatabase) {
  const { db } = database;
  const world = createAlertWorld(database);
  return {
    ...world,
    /** An alert that fires; returns its id. */
    async fire(over: Parameters<typeof world.openSpike>[1] = {}): Promise<number> {
      await world.openSpike(0, over);
      await world.runAt(0);
      const rows = await db.select({ id: alerts.id }).from(alerts);
      return Math.max(...rows.map(({ id }) => id));
    },
    async audit() {
      const rows = await db.select().from(auditEntries).orderBy(auditEntries.id);
      // A test that asks over HTTP makes keys.
      const acts = rows.filter(({ action }) => action !== "key.created");
      return acts.map(({ actor, action, subject, details }) => ({ actor, action, subject, details }));
    },
    notifications: () => db.select().from(notifications).orderBy(notifications.id),
  };
}
