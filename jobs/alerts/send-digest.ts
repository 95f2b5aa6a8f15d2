import { z } from "zod";
import { NOBODY, nextAlert, toAlertRecord, toResolved } from "#alerts/rules/alert-record.ts";
import { addLinks } from "#alerts/rules/message/links.ts";
import {
  buildWeeklyMessage,
  lastWeek,
  type Week,
  weeklyFingerprint,
} from "#alerts/rules/message/weekly-message.ts";
import type { Routing } from "#alerts/rules/routing/routing.ts";
import { lockDigests } from "#db/alerts/alert-week.ts";
import { readNewestAlerts } from "#db/alerts/alerts.ts";
import type { Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { firstRun } from "#lib/cron.ts";
import type { WeekFigures } from "#model/weekly-digest.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { persistTransition } from "./raise-spike.ts";

export interface SendDigestDeps extends Pick<JobContext, "database" | "clock" | "routing" | "afterAlerts"> {
  /** Returns the channels that the configuration names now. */
  readonly digestChannels: () => readonly string[];
  readonly readWeek: (week: Week) => Promise<WeekFigures>;
  /** When the tick of this job runs. */
  readonly expression: string;
}

/**
 * Sends the digest of the last week that is over, once to each channel, from the first run of the tick after its end on. A
 * later start or the sweep makes up for a missed run, so the job may run at any time and twice.
 */
export function createSendDigestJob(deps: SendDigestDeps): AnyJob {
  const { database, clock, expression, afterAlerts } = deps;
  return defineJob({
    name: "send-digest",
    queue: "alerts",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 5 * 60_000,
    async run() {
      const channels = deps.digestChannels();
      if (channels.length === 0) return "the configuration names no channel for a digest";
      const nowMs = clock();
      const week = lastWeek(nowMs);
      if ((firstRun(expression, week.toMs) ?? 0) > nowMs) return "the digest of the last week is not due";
      if ((await findUnsent(database.db, week, channels)).unsent.length === 0)
        return "every channel was sent the digest of the last week";
      const given = { week, channels, figures: await deps.readWeek(week), routing: deps.routing(), nowMs };
      if (await inTransaction(database, ({ tx }) => raiseDigest(tx, given))) await afterAlerts();
      return undefined;
    },
  });
}

interface Digest {
  readonly week: Week;
  readonly channels: readonly string[];
  readonly figures: WeekFigures;
  readonly routing: Routing;
  readonly nowMs: number;
}

/** Returns the alert that carries the digest of a week, and the channels that were not sent it. */
async function findUnsent(db: Queryable, { fromMs }: Week, channels: readonly string[]) {
  const fingerprint = weeklyFingerprint(fromMs);
  const row = (await readNewestAlerts(db, [fingerprint])).get(fingerprint) ?? null;
  const before = row === null ? null : toAlertRecord(row);
  const sent = new Set(before?.transitions.flatMap((one) => one.channels));
  return { fingerprint, row, before, unsent: channels.filter((channel) => !sent.has(channel)) };
}

/** Writes the digest for the channels that were not sent it. Returns false if all were. */
async function raiseDigest(
  tx: Queryable,
  { week, channels, figures, routing, nowMs }: Digest,
): Promise<boolean> {
  // The alert is resolved from the beginning, so no index keeps a second one of the same week out.
  await lockDigests(tx);
  const { fingerprint, row, before, unsent } = await findUnsent(tx, week, channels);
  if (unsent.length === 0) return false;
  const reason = before === null ? "first" : "repeat";
  const recipients = { ...NOBODY, notified: unsent };
  const occurrence = { id: null, severity: "info", openedAtMs: week.toMs } as const;
  const alert = toResolved(nextAlert(before, { reason, occurrence, recipients, nowMs }), nowMs);
  const toMessage = (alertId: number) => {
    const facts = { alertId, fingerprint, alert, reason, figures, zones: routing.zones ?? {} } as const;
    return addLinks(buildWeeklyMessage(facts), routing.links, nowMs);
  };
  const identity = { fingerprint, kind: "weekly", zoneId: null, ruleId: null };
  return persistTransition(tx, { row, before, alert, reason, recipients, identity, toMessage });
}
