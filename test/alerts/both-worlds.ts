import { gt } from "drizzle-orm";
import { pino } from "pino";
import { afterAll } from "vitest";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { notifications } from "#db/schema/notifications.ts";
import { DEFAULT_Z, FLOOR } from "#detection/rules/detection-settings.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import { createRaiseAlertsJob } from "#jobs/alerts/raise-alerts.ts";
import { createJudgeVerdictsJob } from "#jobs/detection/judge-verdicts.ts";
import { createLearnUsualJob } from "#jobs/detection/learn-usual.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS, classifyAction } from "#model/action-class.ts";
import { alertMessage } from "#model/alert-message.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { ENDINGS } from "#model/words.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { createDetectWorld, DAYS } from "../detection/detect-support.ts";
import { runJob } from "../detection/trend-support.ts";

/** The one channel, as in a replay. */
const CHANNEL = "on-call";

/** A message of the service or of a replay, as far as both say the same. */
export interface SaidMessage {
  readonly at: number;
  readonly subject: string;
  readonly reason: string;
  readonly severity: string;
  readonly attackers: string;
  readonly rules: string;
  readonly verdict: string;
}

/** The messages of each zone, by its id. */
export type SaidByZone = ReadonlyMap<number, SaidMessage[]>;

export interface LiveRun {
  readonly from: number;
  readonly to: number;
  /** Called after the jobs of a minute, with what was sent so far. */
  readonly afterMinute?: (minute: number, said: SaidByZone) => Promise<void> | void;
}

/** Opens a database on which the jobs of the service run, minute by minute, with the clock of a test. */
export async function openBothWorlds() {
  const database = await createMigratedDatabase();
  afterAll(() => database.drop());
  await ensurePartitions(database, DAYS);
  const world = createDetectWorld(database);
  const log = pino({ level: "silent" });

  /** Runs the jobs over the events of all zones at the end of each minute of (from, to]. Returns the messages that were sent. */
  async function runLive(
    zones: ReadonlyMap<number, readonly WafEvent[]>,
    { from, to, afterMinute }: LiveRun,
  ): Promise<SaidByZone> {
    const zoneIds = [...zones.keys()];
    for (const [zoneId, events] of zones) await world.keep(events, { zoneId });
    const clock = () => world.now();
    const rules = world.createDetector();
    const sources = world.createSourceDetector(undefined, undefined, undefined, zoneIds);
    const learn = createLearnUsualJob({
      database,
      clock,
      archive: null,
      ipDays: 400,
      actions: BUILT_IN_ACTIONS,
    });
    const judge = createJudgeVerdictsJob({
      actions: BUILT_IN_ACTIONS,
      database,
      clock,
      log,
      learnUsual: () => undefined,
      afterVerdicts: () => undefined,
    });
    let awaits = false;
    const raise = createRaiseAlertsJob({
      whileAwaited: () => {
        awaits = true;
      },
      database,
      clock,
      log,
      routing: () => routeToAll([CHANNEL]),
      zoneIds: [],
      afterAlerts: () => Promise.resolve(),
    });
    const said = new Map(zoneIds.map((zoneId): [number, SaidMessage[]] => [zoneId, []]));
    let [last, minute] = [0, from];
    await world.tickAt(from * MINUTE_MS + 1, async () => {
      for (const zoneId of zoneIds) await learn.run({ zoneId } as never, new AbortController().signal);
    });
    await world.tickThrough(from, to, async () => {
      minute += 1;
      await sources();
      await rules();
      await runJob(judge);
      await runJob(raise);
      for (let again = 0; awaits && again < 3; again += 1) {
        awaits = false;
        await runJob(judge);
        await runJob(raise);
      }
      const rows = await database.db
        .select()
        .from(notifications)
        .where(gt(notifications.id, last))
        .orderBy(notifications.id);
      for (const { id, content } of rows) {
        last = id;
        const message = alertMessage.parse(content);
        // A replay has nobody who acknowledges.
        if (message.reason !== "acknowledged")
          said.get(message.zoneId ?? 0)?.push(describeLive(minute, message));
      }
      await afterMinute?.(minute, said);
    });
    return said;
  }

  return { database, world, runLive };
}

function describeLive(at: number, message: ReturnType<typeof alertMessage.parse>): SaidMessage {
  const { kind, reason, severity, ruleId, attackers = [], members = [], verdict } = message;
  const isIncident = kind === "sources";
  const isShort = isEnd(reason);
  const names = members.map((member) => member.ruleId);
  return {
    at,
    subject: isIncident ? "incident" : "rule",
    reason,
    severity,
    attackers: isShort ? "" : join(attackers.filter(({ isActive }) => isActive).map(nameOf)),
    rules: join(isIncident ? names : [ruleId ?? "", ...names]),
    verdict: isShort ? "" : (verdict?.said ?? ""),
  };
}

/** Replays events. Returns the messages that would have been sent in (from, to]. */
export function replayEvents(
  events: readonly WafEvent[],
  { from, to }: Pick<LiveRun, "from" | "to">,
): SaidMessage[] {
  const replay = createZoneReplay({ z: DEFAULT_Z, floor: FLOOR, fewAddresses: 3, judge: judgeVerdict });
  for (const event of events.toSorted((a, b) => a.occurredAt - b.occurredAt)) {
    const { occurredAt: at, action, ...rest } = event;
    replay.take({ ...rest, at, action: classifyAction(action) }, Math.floor(at / MINUTE_MS));
  }
  return (
    replay
      .finish()
      // The changes of rules are found by a job of their own.
      .filter(({ at, subject }) => at > from && at <= to && subject !== "flip")
      .map(sayReplayed)
  );
}

function sayReplayed({
  at,
  subject,
  reason,
  severity,
  attackers,
  rules,
  verdict,
}: ReplayedMessage): SaidMessage {
  // The short message of an end has no verdict, and names no attackers.
  const isShort = isEnd(reason);
  return {
    at,
    subject,
    reason,
    severity,
    attackers: isShort ? "" : join(attackers.map(nameOf)),
    rules: join(rules),
    verdict: isShort ? "" : (verdict?.said ?? ""),
  };
}

const isEnd = (reason: string) => ENDINGS.some((one) => one === reason);
const nameOf = ({ kind, key }: { kind: string; key: string }) => `${kind}=${key}`;
const join = (names: readonly string[]) => names.toSorted().join(" ");
