/** Writes a block list in the forms that firewalls read. Reasons are hostile text. */
import { many } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { readNetworkNumber } from "#model/ip-address.ts";
import type { BlockForm, BlockKind } from "#model/kinds.ts";

/** The kinds that programs without fingerprints and networks' numbers can block. */
const OF_ADDRESSES: ReadonlySet<BlockKind> = new Set(["address", "network"]);
const COMMENT_CHARS = 200;
/** ipset allows 255 bytes. */
const SET_COMMENT_CHARS = 120;

/** An entry to write. `until` is ISO 8601. */
interface WrittenEntry {
  readonly kind: BlockKind;
  readonly value: string;
  readonly reason: string;
  readonly until: string;
}

type Entries = readonly WrittenEntry[];
type Write = (list: Entries, zoneId: number) => string;

const WRITERS: Readonly<Record<Exclude<BlockForm, "json">, Write>> = {
  text: (list, zoneId) =>
    toText([
      ...describeList(list, zoneId),
      ...addressesOf(list).map((entry) => `${entry.value} # ${toComment(entry)}`),
    ]),
  nginx: (list, zoneId) =>
    toText([
      ...describeList(list, zoneId),
      ...addressesOf(list).map((entry) => `deny ${entry.value}; # ${toComment(entry)}`),
    ]),
  ipset: (list, zoneId) =>
    toText([
      ...describeList(list, zoneId),
      ...writeSet(list, zoneId, "inet"),
      ...writeSet(list, zoneId, "inet6"),
    ]),
  "access-list": (list, zoneId) => `${JSON.stringify(toAccessLists(list, zoneId), null, 2)}\n`,
};

/** Returns the text of a list. It depends on the list alone, so that a client that has it is not sent it again. */
export function writeBlockList(form: Exclude<BlockForm, "json">, list: Entries, zoneId: number): string {
  return WRITERS[form](list, zoneId);
}

const toText = (lines: readonly string[]) => `${lines.join("\n")}\n`;

const addressesOf = (list: Entries) => list.filter(({ kind }) => OF_ADDRESSES.has(kind));

/** A comment ends with its line, and every line break is a blank in it. */
function toComment({ reason, until }: WrittenEntry): string {
  return `until ${until}, ${toLine(reason, COMMENT_CHARS)}`;
}

function describeList(list: Entries, zoneId: number): string[] {
  const shown = addressesOf(list).length;
  const others = list.length - shown;
  return [
    `# Longwatch block list of zone ${zoneId}: ${many(shown, "entry", "entries")}`,
    ...(others === 0
      ? []
      : [
          `# ${many(others, "fingerprint or network number", "fingerprints and network numbers")} only in json and access-list`,
        ]),
  ];
}

/**
 * Returns commands for `ipset restore` that replace a set at once: the new entries are in another set until both are swapped. The
 * first entry of two is refused as a double, so doubles are left out.
 */
function writeSet(list: Entries, zoneId: number, family: "inet" | "inet6"): string[] {
  const own = addressesOf(list).filter(({ value }) => value.includes(":") === (family === "inet6"));
  const name = `longwatch-${zoneId}-${family === "inet" ? 4 : 6}`;
  const create = (set: string) => `create ${set} hash:net family ${family} maxelem 65536 comment -exist`;
  return [
    create(name),
    create(`${name}-new`),
    `flush ${name}-new`,
    ...own.map((entry) => `add ${name}-new ${entry.value} comment "${toSetComment(entry)}" -exist`),
    `swap ${name}-new ${name}`,
    `destroy ${name}-new`,
  ];
}

/** The grammar has no escapes within quotes. */
function toSetComment({ reason, until }: WrittenEntry): string {
  const plain = toLine(reason, SET_COMMENT_CHARS)
    .replace(/["\\]/g, "'")
    .replace(/[^ -~]/g, "?");
  return `until ${until}, ${plain}`;
}

/** The platform's numbers of the types of access lists. */
const TYPES = { address: 0, network: 1, asn: 2, ja4: 5 } as const;

/** Returns the bodies with which the platform makes custom access lists. A list has entries of one type. */
function toAccessLists(entries: Entries, zoneId: number) {
  return [...Map.groupBy(entries, ({ kind }) => kind)].map(([kind, ofKind]) => ({
    name: `longwatch-${zoneId}-${kind}`,
    description: `Attackers of zone ${zoneId}, ${many(ofKind.length, "entry", "entries")}`,
    type: TYPES[kind],
    content: ofKind
      .map(({ value }) => (kind === "asn" ? (readNetworkNumber(value) ?? "") : value))
      .join("\n"),
  }));
}
