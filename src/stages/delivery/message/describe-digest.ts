import { toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { nameZone } from "#model/zones.ts";

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
  settled: "settled",
  resolved: "resolved",
};
