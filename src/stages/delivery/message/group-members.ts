import { formatNumber } from "#lib/format.ts";
import { countCharacters, cutText, toLine } from "#lib/plain-text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { nameZone } from "#model/zones.ts";
import { nameMember } from "./describe-digest.ts";

type Member = NonNullable<AlertMessage["members"]>[number];

/** How much of a group's list a message has room for. */
export interface MemberRoom {
  /** So many members are shown with their counts. */
  readonly rows: number;
  /** Of each such row. */
  readonly rowChars: number;
  /** All the others are named beside them where that takes no more than this, by `measure`. */
  readonly chars: number;
  /** Characters of a text once it is escaped for where it goes; its own without. */
  readonly measure?: Measure;
  /** Where the others are, where they are not in the message itself: `in the thread`. */
  readonly elsewhere?: string;
}

type Measure = (text: string) => number;

/** The rules that a message is about, the worst first. Every text is one harmless line, to be escaped. */
export interface MembersOutline {
  /** `5,000 rules, worst first`. */
  readonly heading: string;
  /** `942100: 847 in 5 min, usually 12 · critical`. */
  readonly rows: readonly string[];
  /** `zone 101: 942110, 942120`; empty where not all of them fit. */
  readonly others: readonly string[];
  /** How many are not named, exactly, and how to see them; null where all are. */
  readonly more: string | null;
  /** Those that are not named. */
  readonly rest: readonly Member[];
}

/** Of names in one message that follows. */
export interface PartRoom {
  readonly chars: number;
  /** A line may be no longer; so much shorter than a part that its last line never matters. */
  readonly lineChars: number;
  readonly measure?: Measure;
  /** At most so many messages; `MOST_PARTS` without. */
  readonly most?: number;
}

export interface MembersPart {
  /** `zone 101 · rules of the flood (2 of 4)`. */
  readonly title: string;
  readonly lines: readonly string[];
}

/** Whatever the number and the names of the rules, a channel is sent no more messages than these after the first. */
const MOST_PARTS = 10;
/** Of an attached list: less than any mail server or chat takes. */
const MAX_FILE_BYTES = 5_000_000;
const LINE_CHARS = 500;
const MAX_FINDING_CHARS = 300;
const FILE_NAME_CHARS = 200;

const length: Measure = countCharacters;

/** Null for a message that speaks for one rule. */
export function outlineMembers(
  message: Pick<AlertMessage, "members" | "howToList">,
  room: MemberRoom,
): MembersOutline | null {
  const { members } = message;
  if (members === undefined || members.length === 0) return null;
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

/** Names all members in lines of at most `chars` together; null where they take more. Only what may fit is packed. */
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

/** `942100: 847 in 5 min, usually 12 · critical`, behind its zone where that is not said already. */
export function describeMember(
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

/** Returns whether a transition lists the members of its group. Advice, acknowledgement and the end do not repeat the list. */
export function showsMembers({ reason, state, members }: AlertMessage): boolean {
  const isNews = reason === "first" || reason === "worse" || reason === "repeat";
  return isNews && state !== "resolved" && (members?.length ?? 0) > 0;
}

/**
 * The members that had no room, by name alone, as messages to follow the first: at most `MOST_PARTS`. What does not go
 * into those either, thousands of rules with names a hundred times as long as usual, is counted in the last one.
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
  return parts.map((lines, index) => ({
    title: `${about}rules of the flood (${index + 1} of ${parts.length})`,
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
 * `zone 101: 942100, 942110; zone 102: 942100`, each line at most `lineChars` by `measure` unless one name alone is
 * longer. A line that goes on with a zone says which it is.
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

/** All members as a table for an attachment: tab-separated, one harmless line each. */
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
