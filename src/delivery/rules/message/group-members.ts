import { formatNumber, many } from "#lib/format.ts";
import { countCharacters, cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isRuleKind } from "#model/rules.ts";
import { NOTICED } from "#model/words.ts";
import { nameZone } from "#model/zones.ts";

type Member = NonNullable<AlertMessage["members"]>[number];

/** The space that a message has for a group's list. */
export interface MemberRoom {
  /** Maximum number of members that are shown with their counts. */
  readonly rows: number;
  /** Maximum length of each such row. */
  readonly rowChars: number;
  /** Space for the names of all other members, by `measure`. If they do not fit, none of them is named here. */
  readonly chars: number;
  /** Returns the length of a text once it is escaped for the receiver. Default: the text's own length. */
  readonly measure?: Measure;
  /** The place of the other members if they are not in the message itself, for example `in the thread`. */
  readonly elsewhere?: string | undefined;
}

type Measure = (text: string) => number;

/** The rules of a message, the most severe first. Every text is one harmless line and still has to be escaped. */
export interface MembersOutline {
  /** `5,000 rules, worst first`. */
  readonly heading: string;
  /** Lines such as `942100: 847 in 5 min, usually 12 · critical`. */
  readonly rows: readonly string[];
  /** Lines such as `zone 101: 942110, 942120`; empty if the names do not all fit. */
  readonly others: readonly string[];
  /** The exact number of members that are not named, and how to list them; null if all are named. */
  readonly more: string | null;
  /** The members that are not named. */
  readonly rest: readonly Member[];
}

/** The space for names in one further message. */
export interface PartRoom {
  readonly chars: number;
  /** Maximum length of a line, much shorter than `chars`, so that the unused rest of a part is small. */
  readonly lineChars: number;
  readonly measure?: Measure;
  /** Maximum number of further messages. Default `MOST_PARTS`. */
  readonly most?: number;
}

export interface MembersPart {
  /** `zone 101 · rules of the incident (2 of 4)`. */
  readonly title: string;
  readonly lines: readonly string[];
}

/** Maximum number of further messages for one transition, whatever the number and the names of its rules. */
const MOST_PARTS = 10;
/** Maximum size of an attached list, which every mail server and chat accepts. */
const MAX_FILE_BYTES = 5_000_000;
const LINE_CHARS = 500;
const MAX_FINDING_CHARS = 300;
const FILE_NAME_CHARS = 200;

const length: Measure = countCharacters;

/** Returns the members of a group and the alerts of a digest. A short message does not list members again. */
export function outlineGroup(
  message: AlertMessage,
  { isShort, room, lineChars }: { isShort: boolean; room: MemberRoom; lineChars: number },
): { readonly members: MembersOutline | null; readonly digest: readonly string[] } {
  const members = isShort ? null : outlineMembers(message, room);
  return { members, digest: describeMembers(message.digest, lineChars) };
}

/** Returns the list of a message's members; null for a message about one rule. */
export function outlineMembers(
  message: Pick<AlertMessage, "kind" | "members" | "howToList">,
  room: MemberRoom,
): MembersOutline | null {
  const { members, kind } = message;
  if (members === undefined || members.length === 0) return null;
  if (isRuleKind(kind)) return outlineSameRequests(members, message.howToList, room);
  const isOneZone = new Set(members.map(({ zoneId }) => zoneId)).size === 1;
  const shown = members.slice(0, room.rows);
  const left = members.slice(shown.length);
  const measure = room.measure ?? length;
  const packed = packWithin(left, room.chars, measure);
  const rest = packed === null ? left : [];
  const count = members.length;
  const word = members.some(({ finding }) => finding !== undefined) ? "alert" : "rule";
  return {
    heading: `${formatNumber(count)} ${word}${count > 1 ? "s, worst first" : ""}`,
    rows: shown.map((member) => cutText(describeMember(member, isOneZone), room.rowChars)),
    others: packed ?? [],
    more: rest.length === 0 ? null : describeMore(rest.length, message.howToList, room.elsewhere),
    rest,
  };
}

/** Returns the list of the rules that match the same requests as the rule of the alert: their names say enough. */
function outlineSameRequests(
  members: readonly Member[],
  howToList: string | undefined,
  { rowChars, elsewhere }: MemberRoom,
): MembersOutline {
  const names: string[] = [];
  let used = 0;
  for (const { ruleId } of members) {
    const name = nameMember(ruleId) || "-";
    used += countCharacters(name) + 2;
    if (names.length > 0 && used > rowChars) break;
    names.push(name);
  }
  const rest = members.slice(names.length);
  return {
    heading: `The same requests also match ${many(members.length, "other rule")}`,
    rows: [cutText(names.join(", "), rowChars)],
    others: [],
    more: rest.length === 0 ? null : describeMore(rest.length, howToList, elsewhere),
    rest,
  };
}

/** Returns lines that name all members, or null once the lines exceed `chars` together. */
function packWithin(members: readonly Member[], chars: number, measure: Measure): readonly string[] | null {
  const lines: string[] = [];
  let used = 0;
  for (const { text } of packNames(members, LINE_CHARS, measure)) {
    used += measure(text) + 1;
    if (used > chars) return null;
    lines.push(text);
  }
  return lines;
}

/** Returns `942100: 847 in 5 min, usually 12 · critical`. The zone precedes it unless all members are in one zone. */
function describeMember(
  { zoneId, zoneName, ruleId, count, windowMinutes, usual, severity, finding }: Member,
  isOneZone: boolean,
): string {
  const zone = isOneZone ? "" : `${nameZone(zoneId, zoneName)}: `;
  if (finding !== undefined) return `${zone}${toLine(finding, MAX_FINDING_CHARS)} · ${severity}`;
  const about = `${zone}${nameMember(ruleId) || "-"}`;
  const usually = usual > 0 ? `usually ${formatNumber(usual)}` : "usually none";
  return `${about}: ${formatNumber(count)} in ${formatNumber(windowMinutes)} min, ${usually} · ${severity}`;
}

function describeMore(count: number, howToList: string | undefined, elsewhere?: string): string {
  const where = elsewhere === undefined ? "" : ` (${elsewhere})`;
  const how = howToList === undefined ? "" : `: ${toLine(howToList, 200)}`;
  return `and ${formatNumber(count)} more${where}${how}`;
}

/** Returns whether a transition lists its group's members. Advice, acknowledgement and the end do not. */
export function showsMembers({ reason, state, members }: AlertMessage): boolean {
  return NOTICED.includes(reason) && state !== "resolved" && (members?.length ?? 0) > 0;
}

/**
 * Returns the names of members that do not fit into the message, as at most `MOST_PARTS` further messages. Names that
 * do not fit into those either are counted in the last one. That needs thousands of rules with very long names.
 */
export function partMembers(
  message: AlertMessage,
  rest: readonly Member[],
  { chars, lineChars, measure = length, most = MOST_PARTS }: PartRoom,
): readonly MembersPart[] {
  if (!showsMembers(message) || rest.length === 0) return [];
  const parts: Line[][] = [];
  let used = Number.POSITIVE_INFINITY;
  let missing = rest.length;
  for (const line of packNames(rest, lineChars, measure)) {
    const cost = measure(line.text) + 1;
    if (used + cost > chars) {
      if (parts.length === most) break;
      parts.push([]);
      used = 0;
    }
    parts.at(-1)?.push(line);
    used += cost;
    missing -= line.names;
  }
  const about = message.zoneId === null ? "" : `${nameZone(message.zoneId, message.zoneName)} · `;
  const of = isRuleKind(message.kind) ? "rules that match the same requests" : "rules of the incident";
  return parts.map((lines, index) => ({
    title: `${about}${of} (${index + 1} of ${parts.length})`,
    lines: [
      ...lines.map(({ text }) => text),
      ...(missing > 0 && index === parts.length - 1 ? [describeMore(missing, message.howToList)] : []),
    ],
  }));
}

interface Line {
  readonly text: string;
  readonly names: number;
}

/**
 * Yields lines such as `zone 101: 942100, 942110; zone 102: 942100`. A line is at most `lineChars` long by `measure`,
 * unless a single name is longer. A line that continues a zone repeats the zone's name.
 */
function* packNames(members: readonly Member[], lineChars: number, measure: Measure): Generator<Line> {
  let texts: string[] = [];
  let used = 0;
  for (const [zoneId, ofZone] of Map.groupBy(members, (member) => member.zoneId)) {
    const zone = `${nameZone(zoneId, ofZone[0]?.zoneName)}: `;
    for (const [index, { ruleId }] of ofZone.entries()) {
      const name = nameMember(ruleId) || "-";
      const added = texts.length === 0 ? zone : index === 0 ? `; ${zone}` : ", ";
      const cost = measure(added) + measure(name);
      if (texts.length > 0 && used + cost > lineChars) {
        yield { text: texts.join(""), names: texts.length };
        texts = [];
        used = 0;
      }
      const text = `${texts.length === 0 ? zone : added}${name}`;
      texts.push(text);
      used += measure(text);
    }
  }
  if (texts.length > 0) yield { text: texts.join(""), names: texts.length };
}

/** Returns the attachment of a message that lists its group's members and has no space for `rest`; null without one. */
export function toAttachment(message: AlertMessage, rest: readonly Member[] = []): string | null {
  return rest.length > 0 && showsMembers(message) ? toMembersFile(message) : null;
}

/** Returns all members as a table for an attachment: tab-separated, one harmless line each. */
export function toMembersFile({
  members = [],
  howToList,
}: Pick<AlertMessage, "members" | "howToList">): string {
  const lines = ["zone\trule\tseverity\tevents\tin minutes\tusually"];
  let left = MAX_FILE_BYTES;
  for (const [index, { zoneId, ruleId, severity, count, windowMinutes, usual }] of members.entries()) {
    const name = toLine(ruleId, FILE_NAME_CHARS) || "-";
    const line = [zoneId, name, severity, count, windowMinutes, usual].join("\t");
    left -= Buffer.byteLength(line) + 1;
    if (left < 0) {
      lines.push(describeMore(members.length - index, howToList));
      break;
    }
    lines.push(line);
  }
  return `${lines.join("\n")}\n`;
}

const NAME_CHARS = 80;

/** Returns an alert's name in a digest: one harmless line. */
export function nameMember(text: string): string {
  return toLine(text, NAME_CHARS);
}

/**
 * Returns every alert of a digest by name, with a line for each zone and kind of transition: `zone 101 · firing:
 * 942100, 942110`. Names are those of `nameMember` and are not cut, so a line may be longer than `lineChars` by one
 * name. Empty if the message is no digest.
 */
export function describeMembers(
  members: AlertMessage["digest"],
  lineChars = Number.POSITIVE_INFINITY,
): string[] {
  const groups = new Map<string, string[]>();
  for (const { zoneId, zoneName, reason, name } of members ?? []) {
    const about = zoneId === null ? "Longwatch" : nameZone(zoneId, zoneName);
    const group = `${about} · ${WORDS[reason]}`;
    const lines = groups.get(group) ?? [];
    const last = lines.at(-1);
    if (last === undefined || last.length > lineChars) lines.push(`${group}: ${name}`);
    else lines[lines.length - 1] = `${last}, ${name}`;
    groups.set(group, lines);
  }
  return [...groups.values()].flat();
}

const WORDS: Readonly<Record<AlertMessage["reason"], string>> = {
  first: "firing",
  join: "new attackers",
  again: "second wave",
  worse: "getting worse",
  repeat: "still firing",
  advice: "advice",
  turned: "new verdict",
  verdict: "new verdict",
  acknowledged: "acknowledged",
  assigned: "assigned",
  commented: "commented",
  settled: "settled",
  resolved: "resolved",
};
