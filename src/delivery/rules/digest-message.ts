/** A message for several notifications. */

import type { ChannelRate, DigestRoom } from "#delivery/receivers/channel-definition.ts";
import { cutText } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { digest } from "#model/fingerprint.ts";
import { NO_EVENTS } from "#model/weekly-digest.ts";
import { isGraver } from "#model/words.ts";
import { describeMembers, nameMember } from "./message/group-members.ts";

type DigestMember = NonNullable<AlertMessage["digest"]>[number];

/** Returns the same key for the same messages, so that a receiver recognises a digest that is sent again. */
export function digestKeyOf(channel: string, dedupeKeys: readonly string[]): string {
  return `digest-${digest([channel, ...[...dedupeKeys].sort()])}`;
}

export function toMember({
  alertId,
  reason,
  severity,
  zoneId,
  zoneName,
  ruleId,
  headline,
}: AlertMessage): DigestMember {
  const named = zoneName === undefined ? {} : { zoneName };
  return { alertId, reason, severity, zoneId, ...named, name: nameMember(ruleId ?? headline) };
}

/** Returns the number of these messages that one digest can name, counted from the first; at least one. */
export function countFitting(members: readonly DigestMember[], room: DigestRoom): number {
  let used = 0;
  const groups = new Set<string>();
  const end = members.findIndex((member) => {
    const group = `${member.zoneId} ${member.reason}`;
    const groupChars = GROUP_CHARS + costOf({ name: member.zoneName ?? "" });
    used += costOf(member) + room.charsBeside + (groups.has(group) ? 0 : groupChars);
    groups.add(group);
    return used > room.maxChars;
  });
  return end === -1 ? members.length : Math.max(end, 1);
}

/** Length of the beginning of a line, `zone 2147483647 () · getting worse: `, without the zone's name. */
const GROUP_CHARS = 43;

/** An escaped character takes up to six characters. */
function costOf({ name }: Pick<DigestMember, "name">): number {
  return Array.from(name).reduce((sum, character) => sum + (/[A-Za-z0-9 .]/.test(character) ? 1 : 6), 0);
}

/**
 * Returns one message that replaces all these messages of one channel. For receivers that show headlines only, the
 * headline lists the names.
 */
export function buildDigest(messages: readonly AlertMessage[], key: string, rate: ChannelRate): AlertMessage {
  const [first] = messages;
  if (first === undefined) throw new Error("A digest needs at least one message.");
  const members = messages.map(toMember);
  const isFiring = messages.some(({ state }) => state !== "resolved");
  const counted = `${messages.length} alerts in one message, because the rate limit of the channel was reached`;
  const names = describeMembers(members).join("; ");
  const headline = rate.digest?.in === "headline" ? `${messages.length} alerts: ${names}` : counted;
  return {
    alertId: first.alertId,
    fingerprint: key,
    dedupeKey: key,
    transition: 1,
    reason: isFiring ? "first" : "resolved",
    state: isFiring ? "firing" : "resolved",
    severity: messages
      .map(({ severity }) => severity)
      .reduce((one, next) => (isGraver(next, one) ? next : one)),
    kind: "self",
    zoneId: null,
    ruleId: null,
    ruleTitle: null,
    headline: cutText(headline, 2_000),
    startedAt: Math.min(...messages.map(({ startedAt }) => startedAt)),
    endedAt: isFiring ? null : Math.max(...messages.map(({ endedAt, startedAt }) => endedAt ?? startedAt)),
    ...NO_EVENTS,
    digest: members,
  };
}
