import { z } from "zod";
import {
  createOpenedBlocks,
  type NewestRecords,
  type OpenedBlocks,
} from "#archive/rules/records/find-records.ts";
import { readNotes } from "#db/alerts/notes.ts";
import { storeProposal } from "#db/detection/exclusions.ts";
import {
  type AlertEvent,
  readAlertEvents,
  readLasting,
  readNearbyRules,
  readOtherEvents,
  readUsualSenders,
  readZoneUsual,
} from "#db/detection/verdict-evidence.ts";
import { type DueVerdict, findDueVerdicts, storeVerdict } from "#db/detection/verdicts.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { crawlerOfNetwork, findCrawler, type VerifyCrawler } from "#detection/rules/verdict/crawlers.ts";
import type { VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { judgeVerdict } from "#detection/rules/verdict/judge-verdict.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { mostFrequent, spread } from "#detection/rules/verdict/requests.ts";
import { toError } from "#lib/errors.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type RequestDetails, readRequest } from "#model/request-facts.ts";
import { MOST_RECORDS } from "#model/verdict.ts";
import { hashZoneEventKey } from "#model/waf-event.ts";
import { AFTER_NOTE_MS, describeNoteBefore } from "#model/words.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";
import { readBlockRecords } from "../archive/copy-records.ts";
import type { JobContext } from "../context.ts";

/** A flood of rules must not keep the detectors waiting. The next run takes up what is left. */
const MOST_VERDICTS = 40;
const RUN_MS = 20_000;
const MOST_ADDRESSES = 200;
/** A first start copies so many whole days. A zone with no more of them may have learnt from a part of their events. */
const COPIED_DAYS = 3;
/** Opening a block of records costs more than everything else, and events of a few minutes share one. */
const MOST_SLOTS = 24;
const SLOT_MS = 5 * MINUTE_MS;
const OPENED_BYTES = 16_777_216;

export interface JudgeVerdictsDeps extends Pick<JobContext, "database" | "clock" | "log" | "actions"> {
  /** Rows of events whose records may not be stored yet. */
  readonly newestRecords?: Pick<NewestRecords, "get">;
  /** Null or left out: no crawler is verified. */
  readonly verifyCrawler?: VerifyCrawler | null;
  /** Called once an hour for a zone of which nothing is usual, or whose first days may have been copied since. */
  readonly learnUsual: (zoneId: number) => unknown;
  /** Called when a verdict was stored. */
  readonly afterVerdicts: () => unknown;
}

interface Parts extends JudgeVerdictsDeps {
  readonly openedBlocks: OpenedBlocks;
}

/**
 * Judges what open alerts are: when they open, and 1, 5 and 30 minutes, 6 and 24 hours later. The due verdicts are found in rows, so a
 * later run makes up for a killed one. If two replicas judge the same spike at once, one stores the verdict. An alert that cannot be judged
 * does not stop the others; the job then fails at its end.
 */
export function createJudgeVerdictsJob(deps: JudgeVerdictsDeps): AnyJob {
  const { database, log, clock } = deps;
  const askedIn = new Map<number, number>();
  const learnUsual = async (zoneId: number) => {
    const hour = Math.floor(clock() / HOUR_MS);
    if (askedIn.get(zoneId) === hour) return;
    askedIn.set(zoneId, hour);
    await deps.learnUsual(zoneId);
  };
  const parts = { ...deps, learnUsual, openedBlocks: createOpenedBlocks(OPENED_BYTES) };
  return defineJob({
    name: "judge-verdicts",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 60_000,
    run: oneAtATime(async (_payload, signal) => {
      const due = await findDueVerdicts(database.db, clock(), MOST_VERDICTS);
      if (due.length === 0) return "no verdict is due";
      const startedMs = performance.now();
      let [stored, failure]: [number, Error | null] = [0, null];
      for (const one of due) {
        signal.throwIfAborted();
        if (performance.now() - startedMs > RUN_MS) break;
        try {
          if (await judge(parts, one)) stored += 1;
        } catch (thrown) {
          failure = toError(thrown);
          log.error({ err: failure, spikeId: one.spike.id, look: one.look }, "alert not judged");
        }
      }
      if (stored > 0) {
        log.info({ stored, due: due.length }, "verdicts stored");
        await deps.afterVerdicts();
      }
      if (failure !== null) throw failure;
      return undefined;
    }),
  });
}

/** Stores a verdict with the exclusion for a misfire that lasts, unless another replica has. */
async function judge(parts: Parts, { spike, look }: DueVerdict): Promise<boolean> {
  const evidence = await readEvidence(parts, { spike, look });
  const verdict = judgeVerdict(evidence);
  const { exclusion } = verdict;
  return inTransaction(parts.database, async ({ tx }) => {
    const isStored = await storeVerdict(tx, spike, verdict);
    const { id: spikeId, zoneId } = spike;
    // The other forms are only shown.
    if (isStored && exclusion?.form === "narrow")
      await storeProposal(tx, { zoneId, spikeId, proposal: exclusion, now: verdict.judgedAt });
    return isStored;
  });
}

async function readEvidence(parts: Parts, { spike, look }: DueVerdict): Promise<VerdictEvidence> {
  const { db } = parts.database;
  const { zoneId, ruleId, sources, closedAt } = spike;
  const [openedAt, judgedAt] = [spike.openedAt.getTime(), parts.clock()];
  const windowMinutes = sources?.findings[0]?.windowMinutes ?? spike.windowMinutes;
  const since = openedAt - windowMinutes * MINUTE_MS;
  // Later events of the same keys belong to others.
  const to = sources === null ? judgedAt : (closedAt?.getTime() ?? judgedAt);
  const events = await readAlertEvents(db, { spike, from: since, to }, parts.actions);
  const others = await readOtherEvents(db, { spike, from: since, to }, events, parts.actions);
  const ips = mostFrequent(events.map(({ ip }) => ip)).slice(0, MOST_ADDRESSES);
  const nearby = (await readNearbyRules(db, { spike, to }, ips)).flatMap(({ paths, ...rule }) =>
    [...new Set(paths.map(templateOf))].map((template) => ({ ...rule, template })),
  );
  const { values, days, hadSession } = await readZoneUsual(db, zoneId, since);
  const isLearnt = Object.keys(values).length > 0;
  if (days > 0 && (!isLearnt || days <= COPIED_DAYS)) await parts.learnUsual(zoneId);
  const requests = await readRequests(parts, zoneId, events);
  const usual = {
    asns: new Set(values.asn),
    ja4s: new Set(values.ja4),
    paths: new Set(values.path),
    days: isLearnt ? days : 0,
    hasCookies: hadSession || [...requests.values()].some(({ hasSession }) => hasSession === true),
  };
  const { verifyCrawler } = parts;
  const asked = verifyCrawler == null ? null : await findCrawler(events, verifyCrawler);
  const crawler = asked ?? crawlerOfNetwork(events);
  const { perAddress, perHour } = await readUsualSenders(db, spike, since, ips);
  const lasting = look === "six-hours" || look === "day" ? await readLasting(db, spike, judgedAt) : null;
  const alert = { look, judgedAt, openedAt, since, ruleId: sources === null ? ruleId : null };
  const usualSenders = new Map<string, number>();
  for (const { ip, most } of perAddress) {
    const address = toSourceAddress(ip);
    usualSenders.set(address, Math.max(most, usualSenders.get(address) ?? 0));
  }
  const background = { usualSenders, usualPerHour: perHour };
  const notes = await readNotes(db, openedAt - AFTER_NOTE_MS, openedAt + 1);
  const began = describeNoteBefore(notes, { zoneId, openedAtMs: openedAt });
  const { peak } = spike;
  return { ...alert, ...background, events, others, nearby, requests, usual, crawler, lasting, began, peak };
}

/** Returns what the records of up to 200 of the events say, of slots that are spread over all of them. */
async function readRequests(
  { database: { db }, openedBlocks, newestRecords }: Parts,
  zoneId: number,
  events: readonly AlertEvent[],
): Promise<ReadonlyMap<string, RequestDetails>> {
  const slots = spread([...Map.groupBy(events, ({ at }) => Math.floor(at / SLOT_MS)).values()], MOST_SLOTS);
  const some = slots.flatMap((slot) => spread(slot, Math.floor(MOST_RECORDS / slots.length)));
  const keyed = some.map((event) => ({ ...event, zoneId, occurredAt: event.at }));
  const stored = await readBlockRecords({ db, openedBlocks }, keyed);
  const facts = new Map<string, RequestDetails>();
  for (const event of keyed) {
    const record = stored.get(hashZoneEventKey(event)) ?? newestRecords?.get(event);
    if (record !== undefined) facts.set(event.logId, readRequest(record, event, ""));
  }
  return facts;
}
