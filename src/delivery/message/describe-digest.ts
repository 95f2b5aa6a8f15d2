import { toLine } from "../../lib/plain-text.ts";
import type { AlertMessage } from "../../model/alert-message.ts";
import { nameZone } from "../../model/zones.ts";

const NAME_CHARS = 80;

/** What a digest calls an alert: one harmless line. */
export function nameMember(text: string): string {
  return toLine(text, NAME_CHARS);
}

/**
 * Every alert of a digest by name, a line for each zone and kind of news: `zone 101 · firing: 942100, 942110`. Names are
 * as `nameMember` left them, and whole, so a line may be longer than `lineChars` by one; empty for a message that is no
 * digest.
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
  worse: "getting worse",
  repeat: "still firing",
  advice: "advice",
  acknowledged: "acknowledged",
  resolved: "resolved",
};
