/** Makes a zone's block list of what is stored, at most once in a while for all who ask. */

import { planFilters, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import { countSenders, readSenders } from "#archive/rules/sql/count-requests.ts";
import type { Searching } from "#archive/search/searching.ts";
import { noteBlockList, readBlockIncidents, readBlockSource } from "#db/detection/request-findings.ts";
import { readZoneHealth } from "#db/proof/platform-health.ts";
import { readRequests } from "#detection/review/read-requests.ts";
import {
  type BlockIncident,
  type BlockList,
  LOOKS_BACK_DAYS,
  listKeys,
  listShared,
  makeBlockList,
} from "#detection/rules/block-list/make-block-list.ts";
import { showAge, showTime } from "#lib/format.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { KNOWN_KINDS } from "#model/kinds.ts";
import type { AnsweredBlockList } from "#model/review.ts";
import type { QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";

/** To make a list takes seconds for a month of millions of events. For so long everybody gets the same one. */
const KEPT_MS = 5 * MINUTE_MS;
/** An entry lasts longer than incidents do: of the time before, only returns count. */
const INCIDENTS_MS = 3 * LOOKS_BACK_DAYS * DAY_MS;
const MAKING_MS = MINUTE_MS;
/** Events that are older when they are judged make no list that a firewall should trust. */
const STALE_MS = HOUR_MS;

type Asking = Pick<QueryContext, "db" | "now" | "caller" | "searching" | "service">;

/** The columns of an event that an entry can name. */
const NAMED_BY = KNOWN_KINDS.filter((kind) => kind !== "ua");

/** The lists of a process by zone. `good`: the last one that any process answered. */
interface Zone {
  kept: { readonly at: number; readonly privacy: string; readonly list: Promise<BlockList> } | null;
  good: AnsweredBlockList | null;
}

const zones = new WeakMap<Searching, Map<number, Zone>>();

function zoneOf(searching: Searching, zoneId: number): Zone {
  const all = zones.get(searching) ?? new Map<number, Zone>();
  zones.set(searching, all);
  const zone = all.get(zoneId) ?? { kept: null, good: null };
  all.set(zoneId, zone);
  return zone;
}

/** Returns a sentence about the last list of a zone that this process knows of; null if there is none. */
export function sayLastList(
  { searching, now }: Pick<Asking, "searching" | "now">,
  zoneId: number,
): string | null {
  const good = zones.get(searching)?.get(zoneId)?.good ?? null;
  if (good === null) return null;
  return `Keep the list that you have. The last good one is ${showAge(now - good.at)} old and had ${good.entries} entries.`;
}

/**
 * Returns the block list of a zone.
 * @throws {Refusal} 503 if its events are not read or not judged now, or if a list that was full is empty without a reason
 */
export async function gatherBlockList(asking: Asking, zoneId: number): Promise<BlockList> {
  const { db, now, searching } = asking;
  const zone = zoneOf(searching, zoneId);
  const { judgedThrough, privacy, answered } = await readBlockSource(db, zoneId);
  if (answered !== null && answered.at > (zone.good?.at ?? 0)) zone.good = answered;
  const [health] = await readZoneHealth(db, [zoneId]);
  const through = Math.min(judgedThrough ?? 0, health?.polledThrough ?? 0);
  if (now - through > STALE_MS)
    throw unavailable(
      through === 0
        ? "its events have never been read and judged"
        : `its events are read and judged only up to ${showTime(through)} UTC`,
    );
  const { kept } = zone;
  if (kept === null || kept.privacy !== privacy || now - kept.at >= KEPT_MS || now < kept.at) {
    const made = gather(asking, zoneId).then(({ incidents, senders }) =>
      makeBlockList(incidents, senders, now),
    );
    const next = { at: now, privacy, list: made };
    zone.kept = next;
    made.catch(() => {
      if (zone.kept === next) zone.kept = null;
    });
  }
  const list = await (zone.kept as NonNullable<Zone["kept"]>).list;
  const isLost = list.entries.length === 0 && Object.keys(list.leftOut).length === 0;
  if (isLost && zone.good !== null && zone.good.until > now) {
    zone.kept = null;
    throw unavailable("its incidents are gone, although entries of the last list have not ended");
  }
  const until = list.entries.reduce((last, entry) => Math.max(last, entry.until), 0);
  zone.good = { at: now, entries: list.entries.length, until };
  await noteBlockList(db, zoneId, zone.good);
  return list;
}

function unavailable(why: string): Refusal {
  return new Refusal(503, {
    slug: "no-block-list",
    detail: `The block list cannot be made: ${why}.`,
    headers: { "retry-after": "60" },
  });
}

/** Reads the incidents of a zone, what their attackers sent in the last days, and all requests of the last `replayed` days. */
export async function gather({ db, now, caller, searching, service }: Asking, zoneId: number, replayed = 0) {
  const incidents = await readBlockIncidents(db, zoneId, now - INCIDENTS_MS);
  const clauses = planKeys(incidents);
  const shared = listShared(incidents);
  const span = { from: now - (LOOKS_BACK_DAYS + replayed) * DAY_MS, to: now };
  const { knownSources } = service.alerting().detection;
  const asked = { zoneId, span, knownSources, actions: searching.ocsf.actions };
  const signal = AbortSignal.timeout(MAKING_MS);
  const { rows, usual } =
    incidents.length === 0 && replayed === 0
      ? { rows: [], usual: [] }
      : await searching.runInPlace({ caller }, { kind: "long", signal }, (deps, stopped) =>
          readRequests(
            deps,
            asked,
            {
              texts: NAMED_BY,
              write: (classified) =>
                countSenders(classified, { end: now, since: now - replayed * DAY_MS, clauses, shared }),
            },
            stopped,
          ),
        );
  const { counts, all } = readSenders(rows);
  return { incidents, all, senders: { counts, countedTo: now, usual } };
}

/** Returns the test for events of these incidents' attackers. No event of another has one of their keys in another column. */
function planKeys(incidents: readonly BlockIncident[]): SearchPlan["clauses"] {
  const { texts, networks } = listKeys(incidents);
  const tests = [
    ...(texts.length === 0 ? [] : [{ kind: "equals" as const, texts }]),
    ...planFilters(networks.length === 0 ? [] : [{ field: "ip", op: "cidr", value: networks }]).flatMap(
      (clause) => clause.tests,
    ),
  ];
  return tests.length === 0 ? [] : [{ columns: NAMED_BY, tests }];
}
