import type { ExclusionClause, ExclusionProposal } from "#model/advice.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { silenceChoices } from "#stages/alerting/message/silence-choices.ts";
import { silenceCommand } from "#stages/alerting/message/silence-command.ts";
import { maskAddress, maskNullable, maskRows, maskText } from "#stages/archive/mask/mask.ts";
import { replaceInJson } from "#stages/privacy/replace-addresses.ts";

type Attacker = NonNullable<AlertMessage["attackers"]>[number];

/** User agents and paths stay as they are: a version such as `121.0.0.0` is no address. */
export function maskMessage(message: AlertMessage): AlertMessage {
  const {
    advice,
    headline,
    top,
    details,
    attackers,
    members,
    traits,
    howToSilence,
    verdict,
    exclusion,
    disagreement,
  } = message;
  return {
    ...message,
    headline: maskText(headline),
    ...(details === undefined ? {} : { details: details.map(maskText) }),
    ...(attackers === undefined ? {} : { attackers: attackers.map(maskNamed) }),
    ...(members === undefined ? {} : { members: members.map(maskMember) }),
    ...(traits === undefined ? {} : { traits: maskTraits(traits) }),
    verdict: verdict && maskVerdict(verdict),
    // A masked command would name another address, or a user agent that nobody has.
    howToSilence: howToSilence && silenceCommand(message.alertId, silenceChoices(message, true)),
    disagreement: disagreement === undefined ? undefined : maskText(disagreement),
    ...(exclusion === undefined ? {} : { exclusion: maskExclusion(exclusion) }),
    top: { ...top, ips: maskRows(top.ips) },
    advice: { ...advice, text: advice.text === null ? null : maskText(advice.text) },
  };
}

/** The command names the path of a request. With an address masked, it would try another path. */
function maskExclusion(exclusion: NonNullable<AlertMessage["exclusion"]>) {
  if (maskNullable(exclusion.command) === exclusion.command) return exclusion;
  return { command: null, reason: NOT_SHOWN };
}

const NOT_SHOWN = "Not shown: an address is in it, which your key does not see.";

/** Returns whether a masked key sees other texts of the clause than those that match. */
export function isMaskedClause({ template, method, parameter }: ExclusionClause): boolean {
  return [template, method, parameter].some((text) => maskNullable(text) !== text);
}

function maskProposal(proposal: ExclusionProposal): ExclusionProposal {
  return proposal.clauses.some(isMaskedClause)
    ? { ...proposal, clauses: [], refusal: proposal.refusal ?? NOT_SHOWN }
    : proposal;
}

/** A request may quote the address of its sender. The matched text is of a raw record, which a masked key does not see. */
export function maskVerdict<
  One extends {
    readonly sample: { readonly matched: string | null } | null;
    readonly exclusion?: ExclusionProposal | null;
  },
>(verdict: One): One {
  const { sample, exclusion } = verdict;
  const proposed = exclusion == null ? {} : { exclusion: maskProposal(exclusion) };
  const shown = { ...verdict, ...proposed, sample: sample && { ...sample, matched: null } };
  return replaceInJson(shown, maskAddress, { dropTraits: false }) as One;
}

/** A sender is an address or a network of addresses. */
export function maskAttacker<One extends Pick<Attacker, "kind" | "key" | "finding">>(one: One): One {
  return {
    ...one,
    key: one.kind === "rules_per_ip" ? maskText(one.key) : one.key,
    finding: maskText(one.finding),
  };
}

function maskNamed(one: Attacker): Attacker {
  return { ...maskAttacker(one), traits: maskTraits(one.traits) };
}

function maskTraits<Traits extends { readonly ip?: readonly string[] | undefined }>(traits: Traits) {
  return traits.ip === undefined ? traits : { ...traits, ip: traits.ip.map((ip) => maskText(ip)) };
}

/** Masks the finding of a member for a zone's sources, because the finding names a source. */
function maskMember(member: NonNullable<AlertMessage["members"]>[number]) {
  return member.finding === undefined ? member : { ...member, finding: maskText(member.finding) };
}
