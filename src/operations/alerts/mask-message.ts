import type { AlertMessage } from "#model/alert-message.ts";
import { maskRows } from "#stages/archive/mask/mask-rows.ts";
import { maskNullable, maskText } from "#stages/archive/mask/mask-text.ts";

/** User agents and paths stay as they are: a version such as `121.0.0.0` is no address. */
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
