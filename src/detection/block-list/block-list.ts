/** The block list of a zone. */
import { z } from "zod";
import { MOST_ENTRIES, replayBlockLists } from "#detection/rules/block-list/make-block-list.ts";
import { writeBlockList } from "#detection/rules/block-list/write-block-list.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { isObject } from "#lib/json.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { BLOCK_FORMS, BLOCK_KINDS, LEFT_OUT } from "#model/kinds.ts";
import { IsoTime, Text, toIso, ZoneId } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireZone } from "#operations/require-known.ts";
import { gather, gatherBlockList, sayLastList } from "./gather-block-list.ts";

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
