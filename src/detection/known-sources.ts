import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import type { Queryable } from "#db/client.ts";
import {
  deleteKnownSource,
  deleteReplaced,
  insertKnownSource,
  type KnownSourceRow,
  listKnownSources,
  lockKnownSources,
  toKnownSource,
} from "#db/detection/exclusions.ts";
import { showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { KNOWN_KINDS } from "#model/kinds.ts";
import { findTooManyKnown, type KnownSource } from "#model/known-source.ts";
import { isAddressPattern } from "#model/subject.ts";
import { type Caller, maySeeAll, maySeeSome, pickSeen } from "#operations/caller.ts";
import {
  IsoTime,
  lineOf,
  notFound,
  pageOf,
  RowId,
  Text,
  Time,
  toIsoOrNull,
  ZoneNumber,
} from "#operations/fields.ts";
import { type Column, defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireZone } from "#operations/require-known.ts";

const PATH = "/api/v1/known-sources";
const TAG = "Alerts";

const Item = z
  .object({
    id: z.number().int().nullable().describe("Null: the source is in the configuration file."),
    kind: z.enum(KNOWN_KINDS),
    pattern: Text,
    zoneIds: z.array(z.number().int()).nullable().describe("Null: every zone."),
    reason: Text,
    until: IsoTime.nullable(),
    createdBy: Text.nullable(),
  })
  .meta({ id: "KnownSource" });
type Item = z.infer<typeof Item>;

const COLUMNS: readonly Column<Item>[] = [
  { head: "SOURCE", get: ({ id }) => (id === null ? "file" : `#${id}`) },
  { head: "KIND", get: ({ kind }) => kind },
  { head: "PATTERN", get: ({ pattern }) => toLine(pattern, 100) },
  { head: "ZONES", get: ({ zoneIds }) => zoneIds?.join() ?? "all" },
  { head: "UNTIL (UTC)", get: ({ until }) => (until === null ? "-" : showTime(until)) },
  { head: "BY", get: ({ createdBy }) => (createdBy === null ? "-" : toLine(createdBy, 100)) },
  { head: "REASON", get: ({ reason }) => toLine(reason, 200) },
];

const listKnown = defineQuery({
  name: "known.list",
  tab: "Known sources",
  summary: "List known sources",
  description: "Those of the configuration file come first. All of them are on one page.",
  http: ["GET", PATH],
  tag: TAG,
  scope: "read",
  input: z.strictObject({}),
  output: pageOf(Item),
  command: {
    examples: ["known list", "known list --json"],
    help: "Sources of detection.known_sources have no number and are changed in the configuration file.",
    columns: COLUMNS,
    empty: "No known sources.",
  },
  run: async ({ caller, db, service }) => {
    const rows = await listKnownSources(db);
    const fromFile = service.alerting().detection.knownSources.map((one) => ({ one, id: null, by: null }));
    const items = [...fromFile, ...rows.map(toFound)].flatMap((found) => toItem(found, caller));
    return { items, next: null };
  },
});

const ADDRESS_RULE = "must be an address or a network such as 198.51.100.0/24";
const pattern = lineOf(300);

const addKnown = defineChange({
  name: "known.add",
  summary: "Add a known source",
  description:
    "The source series leave the events of a known source out from the next minute on. Rules are counted as before. The same source of the same zone is replaced. At most 500 known sources hold in one zone, and 2,000 in all, those of the configuration file among them.",
  http: ["POST", PATH],
  tag: TAG,
  scope: "act",
  refuses: [422],
  input: z.strictObject({
    ip: pattern.refine(isAddressPattern, ADDRESS_RULE).optional().describe("An address or a network."),
    asn: pattern.optional().describe("A network's number (AS64500)."),
    ja4: pattern.optional().describe("A TLS fingerprint."),
    ua: pattern.optional().describe("A user agent; it may end in *."),
    zone: ZoneNumber.optional().describe("Default: every zone."),
    reason: lineOf(500).describe("Why the source is expected."),
    until: Time.optional().describe("The time from which the source counts again. Default: never."),
    kind: z
      .enum(KNOWN_KINDS)
      .optional()
      .meta({ flag: null })
      .describe("With pattern, instead of ip, asn, ja4 or ua."),
    pattern: pattern.optional().meta({ flag: null }).describe("With kind."),
  }),
  output: Item,
  example: { ip: "198.51.100.0/24", reason: "our scanner" },
  created: () => PATH,
  command: {
    examples: [
      'known add --ip 198.51.100.0/24 --reason "our scanner"',
      'known add --ua "Pingdom*" --zone 101 --until 2026-12-31 --reason "uptime monitor"',
    ],
    help: "The source series leave the events of a known source out from the next tick on. An alert says how many events were left out. Rules are counted as before.",
    say: ({ id, kind }) => `known source #${id} (${kind}) is added.\n`,
  },
  run: async (changing, input) => {
    const { caller, tx, now } = changing;
    const { zone, reason, until } = input;
    const wanted = readPattern(input);
    refuseForeign(caller, zone === undefined ? null : [zone]);
    refuseAddress(caller, wanted);
    if (zone !== undefined) await requireZone(changing, zone);
    if (until !== undefined && until <= now)
      throw refuse("until", "must be in the future", { value: new Date(until).toISOString() });
    const expiresAt = until === undefined ? null : new Date(until);
    const added = { ...wanted, zoneId: zone ?? null, reason, expiresAt, createdBy: caller.name };
    await lockKnownSources(tx);
    const replaced = await deleteReplaced(tx, added, new Date(now));
    const row = await insertKnownSource(tx, added);
    const fromFile = changing.service.alerting().detection.knownSources;
    const tooMany = await findTooManyInAll(tx, fromFile, { nowMs: now, zone });
    if (tooMany !== null)
      throw refuse(
        "pattern",
        `${tooMany.rule}; with this one there are ${tooMany.count}, of the configuration file and of known add. Remove one before you add another`,
        { value: wanted.pattern },
      );
    const [item] = toItem(toFound(row), caller);
    const { subject, details } = toEntry(row);
    const replaces = replaced.length === 0 ? {} : { replaces: replaced.join() };
    const audit = { action: "known-source.added", subject, details: { ...details, ...replaces } };
    return { output: item as Item, audit };
  },
});

const removeKnown = defineChange({
  name: "known.remove",
  summary: "Remove a known source",
  http: ["DELETE", `${PATH}/:id`],
  tag: TAG,
  scope: "act",
  input: z.strictObject({ id: RowId.describe("The number of the known source.") }),
  output: z.object({ id: z.number().int(), result: z.literal("removed") }),
  command: {
    examples: ["known remove 3", "known remove 3 --by alice"],
    help: "The source counts again from the next tick on. Sources of the configuration file have no number: change the file.",
    say: ({ id }) => `known source #${id} is removed.\n`,
  },
  run: async ({ caller, tx }, { id }) => {
    const row = (await listKnownSources(tx)).find((one) => one.id === id);
    const zoneIds = row === undefined ? null : toKnownSource(row).zoneIds;
    if (row === undefined || !maySeeSome(caller, zoneIds)) throw notFound(`known source ${id}`);
    refuseForeign(caller, zoneIds);
    if ((await deleteKnownSource(tx, id)) === null) throw notFound(`known source ${id}`);
    return {
      output: { id, result: "removed" as const },
      audit: { action: "known-source.removed", ...toEntry(row) },
    };
  },
});

export const knownOperations = [listKnown, addKnown, removeKnown];

/** Returns the rule that the sources of the configuration file and the stored ones break together; null if there is none. */
export async function findTooManyInAll(
  db: Queryable,
  fromFile: readonly KnownSource[],
  counted: Parameters<typeof findTooManyKnown>[1],
): Promise<ReturnType<typeof findTooManyKnown>> {
  return findTooManyKnown([...fromFile, ...(await listKnownSources(db)).map(toKnownSource)], counted);
}

type Wanted = Pick<KnownSource, "kind" | "pattern">;

/** @throws {Refusal} 422 unless the input names exactly one source */
function readPattern(input: z.output<typeof addKnown.input>): Wanted {
  const named = KNOWN_KINDS.flatMap((kind) =>
    input[kind] === undefined ? [] : [{ kind, pattern: input[kind] }],
  );
  const { kind, pattern } = input;
  if (kind !== undefined && pattern !== undefined) named.push({ kind, pattern });
  const [wanted, ...more] = named;
  if (wanted === undefined || more.length > 0 || (kind === undefined) !== (pattern === undefined))
    throw refuse("ip", "must be given, or one of asn, ja4 and ua instead");
  if (wanted.kind === "ip" && !isAddressPattern(wanted.pattern))
    throw refuse("pattern", ADDRESS_RULE, { value: wanted.pattern, status: 400 });
  return wanted;
}

interface Found {
  readonly one: KnownSource;
  readonly id: number | null;
  readonly by: string | null;
}

function toFound(row: KnownSourceRow): Found {
  return { one: toKnownSource(row), id: row.id, by: row.createdBy };
}

function toItem({ one, id, by }: Found, caller: Caller): Item[] {
  if (!maySeeSome(caller, one.zoneIds)) return [];
  const { kind, pattern, reason, untilMs } = one;
  const zoneIds = one.zoneIds === null ? null : pickSeen(caller, one.zoneIds);
  return [{ id, kind, pattern, zoneIds, reason, until: toIsoOrNull(untilMs), createdBy: by }];
}

/** A masked key may not ask about whole addresses, and an alert without the source would answer. */
function refuseAddress({ masked }: Caller, { kind, pattern }: Wanted): void {
  if (masked && (kind === "ip" || maskText(pattern) !== pattern))
    throw refuse("pattern", "cannot be an address with a key that sees masked addresses");
}

/** A key for some zones names sources of those zones only. */
function refuseForeign(caller: Caller, zoneIds: readonly number[] | null): void {
  if (maySeeAll(caller, zoneIds)) return;
  throw new Refusal(403, {
    detail: `This key is for zone ${caller.zoneIds?.join(", ")} only. A known source that is added or removed with this key must be of one of these zones.`,
  });
}

function refuse(
  field: string,
  rule: string,
  { status = 422, ...shown }: { value?: string; status?: number } = {},
) {
  return new Refusal(status, { slug: "invalid-known-source", mistakes: [{ field, rule, ...shown }] });
}

function toEntry({ id, zoneId, kind, pattern, reason, expiresAt }: KnownSourceRow) {
  const until = expiresAt?.toISOString() ?? null;
  return {
    subject: `known source ${id}`,
    details: { zoneId, kind, pattern: maskText(pattern), reason: maskText(reason), until },
  };
}
