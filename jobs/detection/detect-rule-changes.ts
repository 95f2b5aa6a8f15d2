/** Detects rules whose action changed. */

import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import {
  type ChangesRow,
  closeChanges,
  readActionCounts,
  readChanges,
  readRuleActions,
} from "#db/detection/rule-changes.ts";
import { createActionWatch, type NewChange } from "#detection/rules/action-watch.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import { keyOf } from "#model/fingerprint.ts";
import { CHANGE_KINDS } from "#model/kinds.ts";
import { OPEN_DAYS } from "#model/rules.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { findSilentRules, findSpeaking, REPORTED_MS, storeChanges } from "./find-silent-rules.ts";

/** Minutes that are read again for late events. A process reads more in its first run. */
const OVERLAP_MS = 15 * MINUTE_MS;
const FIRST_RUN_MS = DAY_MS;

type DetectRuleChangesDeps = Pick<JobContext, "database" | "clock" | "log" | "afterSpikes">;

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

/** Four surprises are the least that can prove a change, which ten of thirty events may already have done. */
const RARE = { atLeast: 4, share: 0.35 };
/** Maximum number of rules that are judged in one run, those with the rarest action first. */
const RULES_PER_RUN = 300;
/** The newest events of a rule. In so many usual ones every run of surprises ends. */
const EVENTS_PER_RULE = 500;

/**
 * Finds rules that begin to block or to log. A rule is judged whenever it has an event of the action that is rare for it
 * in [fromMs, nowMs), from its stored events and hours.
 */
async function findFlips(
  db: Queryable,
  rows: readonly ChangesRow[],
  { fromMs, nowMs }: { fromMs: number; nowMs: number },
): Promise<(NewChange & { readonly zoneId: number })[]> {
  const changed = new Map(
    rows.flatMap(({ zoneId, changes }) =>
      changes.map((change) => [keyOf({ zoneId, ruleId: change.ruleId }), { zoneId, ...change }] as const),
    ),
  );
  // A run of surprises may be a week old, and what was usual before it is of another week.
  const fromHour = Math.floor((nowMs - 2 * REPORTED_MS) / HOUR_MS);
  const scope = { fromMs, daysFromMs: nowMs - REPORTED_MS, fromHour, limit: RULES_PER_RUN, ...RARE };
  const counts = await readActionCounts(db, { ...scope, changed: [...changed.values()] });
  if (counts.length === 0) return [];
  const watch = createActionWatch();
  for (const { hours, ...rule } of counts) {
    const { since, foundAt = 0 } = changed.get(keyOf(rule)) ?? {};
    watch.restore(
      keyOf(rule),
      hours.map(([hour, stopped, logged]) => ({ hour, stopped, events: stopped + logged })),
      since === undefined ? undefined : { since, foundAt: Math.floor(foundAt / MINUTE_MS) },
    );
  }
  const events = await readRuleActions(db, counts, {
    afterMs: nowMs - REPORTED_MS,
    limit: EVENTS_PER_RULE,
    atLeast: RARE.atLeast,
  });
  // The last one of a rule counts: it may have changed and changed back.
  const flips = new Map<string, NewChange & { readonly zoneId: number }>();
  for (const { zoneId, ruleId, minute, action, ip } of events) {
    const key = keyOf({ zoneId, ruleId });
    const found = watch.take(key, classifyAction(action), toSourceAddress(ip), minute);
    if (found === null) continue;
    const { since, minute: _minute, ruleId: _key, ...flip } = found;
    flips.set(key, { zoneId, ruleId, since, flip });
  }
  return [...flips.values()];
}
