import { z } from "zod";
import { type AnyJob, defineJob, oneAtATime } from "#adapters/queue/define-job.ts";
import type { Database } from "#db/client.ts";
import { closeChanges, readChanges } from "#db/detection/rule-changes.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { CHANGE_KINDS } from "#model/kinds.ts";
import { OPEN_DAYS } from "#model/rules.ts";
import { findFlips } from "./find-flips.ts";
import { findSilentRules, findSpeaking } from "./find-silent-rules.ts";
import { REPORTED_MS, storeChanges } from "./store-changes.ts";

/** Minutes that are read again for late events. A process reads more in its first run. */
const OVERLAP_MS = 15 * MINUTE_MS;
const FIRST_RUN_MS = DAY_MS;

export interface DetectRuleChangesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a spike opened, changed or closed. */
  readonly afterSpikes: () => unknown;
}

/**
 * Finds rules that begin to block or to log, and rules that fall silent or have events again. Everything is derived from
 * rows, so any replica and any later run come to the same result.
 */
export function createDetectRuleChangesJob({
  database,
  clock,
  log,
  afterSpikes,
}: DetectRuleChangesDeps): AnyJob {
  const { db } = database;
  let judgedMs: number | null = null;
  return defineJob({
    name: "detect-rule-changes",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 120_000,
    run: oneAtATime(async () => {
      const nowMs = clock();
      const fromMs = judgedMs === null ? nowMs - FIRST_RUN_MS : judgedMs - OVERLAP_MS;
      let [closed, stored] = [0, 0];
      for (const kind of CHANGE_KINDS) {
        closed += await closeChanges(db, { kind, openedBeforeMs: nowMs - OPEN_DAYS[kind] * DAY_MS, nowMs });
        const rows = await readChanges(db, { kind, closedAfterMs: nowMs - REPORTED_MS });
        const isSilence = kind === "silent-rule";
        const found = isSilence
          ? await findSilentRules(db, nowMs)
          : await findFlips(db, rows, { fromMs, nowMs });
        const ended = new Map<number, ReadonlySet<string>>();
        for (const row of isSilence ? rows.filter(({ isOpen }) => isOpen) : [])
          ended.set(row.zoneId, new Set(await findSpeaking(db, row, nowMs)));
        const byZone = Map.groupBy(found, ({ zoneId }) => zoneId);
        for (const zoneId of new Set([...byZone.keys(), ...ended.keys()])) {
          const changes = (byZone.get(zoneId) ?? []).map(({ zoneId: _zone, ...change }) => change);
          const zone = { zoneId, kind, found: changes, ended: ended.get(zoneId) ?? new Set() };
          if (await storeChanges(database, zone, clock)) stored += 1;
        }
      }
      judgedMs = nowMs;
      if (closed + stored === 0) return "no rule changed its action, fell silent or has events again";
      log.info({ zones: stored, closed }, "rule changes detected");
      await afterSpikes();
      return undefined;
    }),
  });
}
