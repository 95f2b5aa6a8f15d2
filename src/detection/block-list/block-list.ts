/** The block list of a zone. */

import { z } from "zod";
import { planFilters, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import { countSenders, readSenders } from "#archive/rules/sql/count-requests.ts";
import type { Searching } from "#archive/search/searching.ts";
import { noteBlockList, readBlockIncidents, readBlockSource } from "#db/detection/request-findings.ts";
import { readZoneHealth } from "#db/proof/platform-health.ts";
import { readRequests } from "#detection/review/open-review.ts";
import {
  type BlockIncident,
  type BlockList,
  LOOKS_BACK_DAYS,
  listKeys,
  listShared,
  MOST_ENTRIES,
  makeBlockList,
  replayBlockLists,
} from "#detection/rules/block-list/make-block-list.ts";
import { writeBlockList } from "#detection/rules/block-list/write-block-list.ts";
import { formatWhole, many, showAge, showTime } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BLOCK_FORMS, BLOCK_KINDS, KNOWN_KINDS, LEFT_OUT } from "#model/kinds.ts";
import type { AnsweredBlockList } from "#model/review.ts";
import { IsoTime, Text, toIso, ZoneId } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireZone } from "#operations/require-known.ts";

const REPLAYED_DAYS = 7;
const MOST_HIT = 10;

const Entry = z
  .object({
    kind: z.enum(BLOCK_KINDS),
    value: Text,
    reason: Text,
    alert: z.number().int().nullable(),
    firstSeen: IsoTime,
    lastSeen: IsoTime,
    until: IsoTime.describe("24 hours after the last request, doubled for each return, 30 days at most."),
    requests: z.number().int().describe("Hostile requests in 30 days."),
  })
  .meta({ id: "BlockEntry" });

const Requests = z.object({
  hostile: z.number().int(),
  machine: z.number().int().describe("Crawlers, monitors and known sources."),
  visitor: z.number().int(),
  unknown: z.number().int(),
});

const DryRun = z.object({
  from: IsoTime,
  to: IsoTime,
  stopped: Requests.describe("Requests that each day's list would have stopped, by whose they are."),
  all: Requests,
  hit: z
    .array(z.object({ at: IsoTime, ip: Text, requests: z.number().int(), entry: Text }))
    .describe(`The first ${MOST_HIT} visitors that would have been stopped, with the entry.`),
});

const BlockListAnswer = z.object({
  zone: z.number().int(),
  items: z.array(Entry).describe(`The heaviest first, ${formatWhole(MOST_ENTRIES)} at most.`),
  leftOut: z
    .array(z.object({ reason: z.enum(LEFT_OUT), attackers: z.number().int() }))
    .describe("Attackers that are not on the list, by the reason."),
  dryRun: DryRun.nullable(),
});

export const showBlockList = defineQuery({
  name: "blocklist.show",
  summary: "Show the attackers that a firewall should block",
  description:
    "Lists attackers of incidents whose verdict is attack or scanner with odds of 0.9 or more. Addresses of visitors, known sources, verified crawlers and networks of which under half of the requests are hostile are never listed. The answer has the form of `form`, unless the client accepts only JSON. It has an ETag. If the list cannot be made, the answer is 503 and never an empty list: keep the list that you have. A key with the role feed may request this address only.",
  http: ["GET", "/api/v1/blocklist"],
  tag: "Alerts",
  scope: "feed",
  zone: "zone",
  takesBasic: true,
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneId,
    form: z
      .enum(BLOCK_FORMS)
      .default("text")
      .describe(
        "ipset: input of ipset restore. nginx: deny directives. access-list: bodies for the platform.",
      ),
    dryRun: z
      .enum(["true", "false"])
      .default("false")
      .meta({ isSwitch: true })
      .describe(
        "Say what the lists of the last 7 days would have stopped, and which visitors. Not for a feed key.",
      ),
  }),
  output: BlockListAnswer,
  example: { zone: "101", form: "ipset" },
  headers: () => ({ "cache-control": "private, no-cache" }),
  render: ({ zone, items }, { form, dryRun }) =>
    form === "json" || dryRun === "true"
      ? null
      : {
          type: form === "access-list" ? "application/json; charset=utf-8" : "text/plain; charset=utf-8",
          body: writeBlockList(form, items, zone),
        },
  sayLast: (asked, input) => sayLastList(asked, Number(isObject(input) ? input["zone"] : null)),
  command: {
    name: "",
    examples: ["blocklist --zone 101 --form ipset", "blocklist --zone 101 --dry-run"],
    help: "Longwatch blocks nothing itself. A firewall can fetch the list from /api/v1/blocklist with a key of the role feed.",
    say: (output, { input: { form = "text" } }) => {
      const { zone, items, dryRun } = output;
      if (dryRun !== null) return describeDryRun(dryRun, items.length);
      if (form === "json") return `${JSON.stringify(output, null, 2)}\n`;
      return writeBlockList(form, items, zone);
    },
  },
  run: async (asked, { zone, dryRun }) => {
    const { caller, now } = asked;
    if (caller.masked)
      throw new Refusal(403, {
        detail: "This key sees masked addresses only. A block list has whole addresses. Use another key.",
      });
    if (dryRun === "true" && !caller.scopes.has("read"))
      throw new Refusal(403, {
        detail: "A key with the role feed may fetch the list only. Leave dryRun out.",
      });
    await requireZone(asked, zone);
    const { entries, leftOut } = await gatherBlockList(asked, zone);
    return {
      zone,
      items: entries.map(({ alertId, firstSeen, lastSeen, until, ...entry }) => ({
        ...entry,
        alert: alertId,
        firstSeen: toIso(firstSeen),
        lastSeen: toIso(lastSeen),
        until: toIso(until),
      })),
      leftOut: LEFT_OUT.flatMap((reason) => {
        const attackers = leftOut[reason] ?? 0;
        return attackers === 0 ? [] : [{ reason, attackers }];
      }),
      dryRun: dryRun === "true" ? await tryLists() : null,
    };

    async function tryLists() {
      const { incidents, senders, all } = await gather(asked, zone, REPLAYED_DAYS);
      const { stopped, hit } = replayBlockLists(incidents, senders, REPLAYED_DAYS);
      return {
        from: toIso(now - REPLAYED_DAYS * DAY_MS),
        to: toIso(now),
        stopped,
        all,
        hit: hit.slice(0, MOST_HIT).map(({ at, ...one }) => ({ ...one, at: toIso(at) })),
      };
    }
  },
});

function describeDryRun({ from, to, stopped, all, hit }: z.output<typeof DryRun>, entries: number): string {
  const count = (of: keyof typeof all) => `${formatWhole(stopped[of])} of ${formatWhole(all[of])}`;
  const lines = [
    `${showTime(Date.parse(from))} to ${showTime(Date.parse(to))} UTC, each day with the list of its beginning`,
    `would have stopped ${count("hostile")} hostile requests, ${count("unknown")} of unknown senders, ${count("machine")} of machines and ${count("visitor")} of visitors.`,
    ...hit.map(
      ({ at, ip, requests, entry }) =>
        `visitor ${toLine(ip, 60)}, ${many(requests, "request")} from ${showTime(Date.parse(at))}: stopped by ${toLine(entry, 120)}`,
    ),
    `The list of now has ${many(entries, "entry", "entries")}.`,
  ];
  return `${lines.join("\n")}\n`;
}

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
