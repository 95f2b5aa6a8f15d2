/** The message and the summary of an alert for callers who may not see addresses. */

import { gravestSeverity } from "#alerts/rules/alert-history.ts";
import { parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { silenceChoices, silenceCommand } from "#alerts/rules/message/commands.ts";
import { maskAddress, maskNullable, maskRows, maskText } from "#archive/rules/mask.ts";
import type { AlertRow } from "#db/alerts/alerts.ts";
import { toSafeLinks } from "#delivery/rules/message/document.ts";
import type { ExclusionClause, ExclusionProposal } from "#model/advice.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { replaceInJson } from "#people/rules/replace-addresses.ts";

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

/** A short form of an alert; times in epoch ms. Texts come from events: untrusted. */
interface AlertSummary {
  readonly id: number;
  readonly state: AlertRow["state"];
  readonly severity: AlertMessage["severity"];
  readonly kind: string;
  readonly zoneId: number | null;
  /** The name in the last message; null for a zone without a name. */
  readonly zoneName: string | null;
  readonly ruleId: string | null;
  readonly firedAt: number;
  readonly acknowledgedAt: number | null;
  readonly acknowledgedBy: string | null;
  readonly resolvedAt: number | null;
  readonly fingerprint: string;
  /** Null if the stored message cannot be read. */
  readonly headline: string | null;
  /** The links of the configuration file. */
  readonly links: AlertMessage["links"];
}

export function summariseAlert(row: AlertRow): AlertSummary {
  const { id, state, kind, zoneId, ruleId, acknowledgedBy, fingerprint } = row;
  const message = parseDetails(row.details).message;
  return {
    id,
    state,
    severity: message?.severity ?? gravestSeverity(toAlertRecord(row)),
    kind,
    zoneId,
    zoneName: message?.zoneName ?? null,
    ruleId,
    firedAt: row.firedAt.getTime(),
    acknowledgedAt: row.acknowledgedAt?.getTime() ?? null,
    acknowledgedBy,
    resolvedAt: row.resolvedAt?.getTime() ?? null,
    fingerprint,
    headline: message?.headline ?? null,
    links: toSafeLinks(message?.links ?? []).map(({ title, href }) => ({ title, url: href })),
  };
}
