import type { AlertMessage } from "#model/alert-message.ts";
import { maskAddress } from "#stages/archive/mask/mask.ts";
import { maskNullable, maskText } from "#stages/archive/mask/mask-text.ts";

interface CountedValue {
  readonly value: string;
  readonly count: number;
  readonly share: number;
}

/** Masks counted addresses. Networks that become equal are counted together. */
export function maskRows(rows: readonly CountedValue[]): CountedValue[] {
  const merged = new Map<string, CountedValue>();
  for (const { value, count, share } of rows) {
    const masked = maskAddress(value);
    const seen = merged.get(masked) ?? { value: masked, count: 0, share: 0 };
    merged.set(masked, { ...seen, count: seen.count + count, share: Math.min(seen.share + share, 1) });
  }
  return [...merged.values()];
}

/** Masks addresses, but no user agents and paths: a version such as `121.0.0.0` is not an address. */
export function maskMessage(message: AlertMessage): AlertMessage {
  const { advice, headline, top, details, members, traits, howToSilence } = message;
  return {
    ...message,
    headline: maskText(headline),
    ...(details === undefined ? {} : { details: details.map(maskText) }),
    ...(members === undefined ? {} : { members: members.map(maskMember) }),
    ...(traits?.ip === undefined ? {} : { traits: { ...traits, ip: traits.ip.map(maskText) } }),
    howToSilence: maskNullable(howToSilence),
    top: { ...top, ips: maskRows(top.ips) },
    advice: { ...advice, text: advice.text === null ? null : maskText(advice.text) },
  };
}

/** Masks the finding of a member for a zone's sources, because the finding names a source. */
function maskMember(member: NonNullable<AlertMessage["members"]>[number]) {
  return member.finding === undefined ? member : { ...member, finding: maskText(member.finding) };
}
