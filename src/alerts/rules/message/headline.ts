/** The headline of a message, and texts about changes. */
import { formatDuration, formatRounded, formatShare, formatWhole, many, showTime } from "#lib/format.ts";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type CustomCondition, describeLimit } from "#model/custom-condition.ts";
import { isChangeKind, lastingChanges, type RuleChange } from "#model/rules.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { isBenign } from "#model/verdict.ts";
import { nameZone } from "#model/zones.ts";
import type { AlertRecord } from "../alert-record.ts";
import { type AlertSpike, isCalm, isSettled, nameRule } from "../alert-spike.ts";
import { describeIncident } from "./describe-incident.ts";

/** Below this it would be shown as a multiple of nothing. */
const LEAST_USUAL = 0.05;

/**
 * The one line a phone shows: what, where, how much. Without severity and transition, which every channel sets itself.
 * Holds the rule's id, which is the log's text.
 */
export function headlineOf(spike: AlertSpike, state: AlertRecord["state"]): string {
  if (spike.kind === "sources") return headlineOfIncident(spike, state);
  if (isChangeKind(spike.kind)) return headlineOfChanges(spike, state);
  if (spike.condition != null) return headlineOfCondition(spike, spike.condition, state);
  const { windowMinutes, windowCount, baseline, peak } = spike;
  const subject = nameSeries(spike);
  const usually = baseline >= LEAST_USUAL ? `usually ${formatRounded(baseline)}` : "usually none";
  if (state === "resolved") {
    const now = `${formatRounded(windowCount)} in ${windowMinutes} min`;
    if (isSettled(spike))
      return `${subject} goes on: ${now}, which is its usual rate from now on. Mark the alert, or exclude what misfires`;
    return `${subject} is back to its usual rate: ${now}, ${usually}; peak ${formatRounded(peak)}`;
  }
  const active = `${formatRounded(windowCount)} events in ${windowMinutes} min`;
  if (isCalm(spike)) {
    const calmed =
      spike.kind === "new-rule" ? "was newly active and has calmed down" : "has calmed down for now";
    return `${subject} ${calmed}, ${active}, peak ${formatRounded(peak)}`;
  }
  if (spike.kind === "new-rule") return `${subject} is newly active, ${active}`;
  const compared =
    baseline >= LEAST_USUAL
      ? `${formatRounded(windowCount / baseline)} times the usual ${formatRounded(baseline)}`
      : usually;
  return `${subject} is spiking, ${active}, ${compared}`;
}

function headlineOfIncident(spike: AlertSpike, state: AlertRecord["state"]): string {
  const zone = nameZone(spike.zoneId, spike.zoneName);
  if (spike.sources == null) return `incident in ${zone}`;
  const { title, finding, earlier } = describeIncident(spike);
  if (state === "resolved") return `${title} in ${zone}: ended; at most ${earlier}`;
  return `${title} in ${zone}: ${isCalm(spike) ? `quiet now; earlier ${earlier}` : finding}`;
}

/** `custom condition admin in zone 101 (shop): 12 events within 1 h, more than 10`. */
function headlineOfCondition(
  { zoneId, zoneName, windowCount, peak }: AlertSpike,
  condition: CustomCondition,
  state: AlertRecord["state"],
): string {
  const { name, moreThan, distinct, withinMinutes } = condition;
  const subject = `custom condition ${name} in ${nameZone(zoneId, zoneName)}`;
  const isOver = state === "resolved";
  if (moreThan === null && isOver) return `${subject}${windowCount > 0 ? ": events come again" : " ended"}`;
  if (moreThan === null) return `${subject}: ${describeLimit(condition)}`;
  const count = isOver ? peak : windowCount;
  const what: [string, string] =
    distinct === null ? ["event", "events"] : [`value of ${distinct}`, `different values of ${distinct}`];
  const counted = `${many(count, ...what)} within ${formatDuration(withinMinutes * MINUTE_MS)}`;
  if (isOver) return `${subject} ended: at most ${counted}`;
  return `${subject}: ${counted}${moreThan === 0 ? "" : `, more than ${formatWhole(moreThan)}`}`;
}

/** `SQL injection: rule 942100 in zone 101 (shop)`. */
export function nameSeries({
  zoneId,
  zoneName,
  ruleId,
}: Pick<AlertSpike, "zoneId" | "zoneName" | "ruleId">): string {
  if (ruleId === SOURCES_RULE) return `incident in ${nameZone(zoneId, zoneName)}`;
  return `${nameRule(ruleId)} in ${nameZone(zoneId, zoneName)}`;
}

/** Rules that a headline names, and rules of which each has a sentence of its own. */
const NAMED = 3;
const DESCRIBED = 5;
/** A line of many rules, and the most lines: what all channels show. */
const LINE_CHARS = 280;
const MOST_LINES = 6;
const ID_CHARS = 60;

/** Returns the headline of an alert about changes of a zone's rules. Holds rule ids, which are the log's text. */
function headlineOfChanges(
  { kind, zoneId, zoneName, changes: all }: AlertSpike,
  state: AlertRecord["state"],
): string {
  const zone = nameZone(zoneId, zoneName);
  const changes = lastingChanges(all ?? []);
  const [first, ...others] = changes;
  if (first === undefined) return `rules of ${zone} changed`;
  const isOne = others.length === 0;
  const subject = `${isOne ? nameRule(cut(first.ruleId)) : many(changes.length, "rule")} in ${zone}`;
  const earliest = changes.reduce((one, other) => (other.since < one.since ? other : one));
  const since = `since ${showSince(earliest)}`;
  const isOver = state === "resolved";
  if (kind === "silent-rule") {
    if (isOver && first.endedAt !== null)
      return `${subject} ${isOne ? "has" : "have"} events again; silent ${since} for ${formatDuration(first.endedAt - earliest.since * MINUTE_MS)}`;
    const silent = `${subject} ${isOne ? "is" : "are"} silent ${since}`;
    if (isOver) return `${silent}; an alert about silent rules ends after a week`;
    return `${silent}: ${isOne ? describeExpected(first) : nameSome(changes)}`;
  }
  const acting = `${subject} ${verbOf(changes)} ${since}`;
  if (isOver) return `${acting}; an alert about changed actions ends after a day`;
  if (isOne) return `${acting}: ${describeFlips(changes)}`;
  return `${acting}: ${nameSome(changes)}${isOneWay(changes) ? `; ${describeFlips(changes)}` : ""}`;
}

/** Returns a sentence for each of a few rules, or lines that name all of many. */
export function detailsOfChanges(all: readonly RuleChange[]): string[] {
  const changes = lastingChanges(all);
  if (changes.length < 2) return [];
  const verb = (change: RuleChange) => (change.flip === undefined ? "is silent" : verbOf([change]));
  if (changes.length <= DESCRIBED)
    return changes.map((change) => {
      const counted = change.flip === undefined ? describeExpected(change) : describeFlips([change]);
      return `rule ${cut(change.ruleId)} ${verb(change)} since ${showSince(change)}: ${counted}`;
    });
  const lines: string[] = [];
  let named = 0;
  for (const [what, ofOne] of Map.groupBy(changes, verb))
    for (const [index, { ruleId }] of ofOne.entries()) {
      const [id, last] = [cut(ruleId), lines.at(-1) ?? ""];
      const isNew = index === 0 || last.length + id.length >= LINE_CHARS;
      if (isNew && lines.length === MOST_LINES)
        return [...lines, `and ${many(changes.length - named, "more rule")}`];
      if (isNew) lines.push(`${what}: ${id}`);
      else lines[lines.length - 1] = `${last}, ${id}`;
      named += 1;
    }
  return lines;
}

/** `6 of 6 events of 4 addresses; before, 98 % of 1,204 were logged`. */
function describeFlips(changes: readonly RuleChange[]): string {
  const flips = changes.flatMap(({ flip }) => flip ?? []);
  const sum = (read: (flip: (typeof flips)[number]) => number) =>
    flips.reduce((all, one) => all + read(one), 0);
  const [first] = flips;
  const before = sum((one) => one.before);
  const usual = formatShare(before === 0 ? 0 : sum((one) => one.usualEvents) / before);
  const senders = flips.length === 1 ? ` of ${many(first?.addresses ?? 0, "address", "addresses")}` : "";
  const counted = `${formatWhole(sum((one) => one.events))} of ${many(
    sum((one) => one.of),
    "event",
  )}${senders}`;
  const word = first?.blocks === true ? "logged" : "blocked or challenged";
  return `${counted}; before, ${usual} of ${formatWhole(before)} were ${word}`;
}

function describeExpected({ expected = 0 }: RuleChange): string {
  return `about ${many(Math.round(expected), "event")} were to be expected since then`;
}

function isOneWay(changes: readonly RuleChange[]): boolean {
  return new Set(changes.map(({ flip }) => flip?.blocks)).size === 1;
}

function verbOf(changes: readonly RuleChange[]): string {
  const s = changes.length === 1 ? "s" : "";
  if (!isOneWay(changes)) return "changed their actions";
  if (changes[0]?.flip?.blocks !== true) return `log${s}`;
  return changes.some(({ flip }) => flip?.challenges) ? `block${s} or challenge${s}` : `block${s}`;
}

function nameSome(changes: readonly RuleChange[]): string {
  const named = changes.slice(0, NAMED).map(({ ruleId }) => cut(ruleId));
  const rest = changes.length - named.length;
  return `${named.join(", ")}${rest > 0 ? ` and ${formatWhole(rest)} more` : ""}`;
}

/** The time of day if it is of the day on which the change was found. */
function showSince({ since, foundAt }: RuleChange): string {
  const [day, time] = showTime(since * MINUTE_MS).split(" ");
  const isSameDay = Math.floor((since * MINUTE_MS) / DAY_MS) === Math.floor(foundAt / DAY_MS);
  return `${isSameDay ? time : `${day} ${time}`} UTC`;
}

function cut(text: string): string {
  const points = Array.from(text);
  return points.length <= ID_CHARS ? text : `${points.slice(0, ID_CHARS).join("")}…`;
}

type Verdict = Pick<NonNullable<AlertMessage["verdict"]>, "said" | "title" | "for">;

/** Sentences of a recommendation that are read, from the start. */
const MOST_CHARS = 4_000;
const KEEP = /\b(?:keep|leave)\b.{0,60}\b(?:rule|enabled|active|blocking)\b/i;
const RELAX =
  /\b(?:disable|exclude|exclusion|exception|whitelist|allowlist|log[- ]only|false[- ]positives?)\b/i;
const NEGATION = /\b(?:not|no|never|without|unless|if)\b|n't\b/i;

/**
 * Returns a line that says that the platform's advice and the verdict disagree, and why; undefined if they agree, or if the
 * advice is not clear. The text of the advice is hostile, so the line quotes none of it.
 */
export function describeDisagreement(
  advice: AlertMessage["advice"],
  verdict: Verdict | undefined,
): string | undefined {
  const advises = advice.text === null ? null : readAdvice(advice.text);
  if (verdict === undefined || advises === null) return undefined;
  const isOpposed = advises === "keep" ? isBenign(verdict) : verdict.said === "attack";
  if (!isOpposed) return undefined;
  const asked = advises === "keep" ? "keep the rule" : "relax the rule";
  const [reason] = verdict.for;
  const because =
    reason === undefined
      ? ""
      : `, because ${reason.charAt(0).toLowerCase()}${reason.slice(1).replace(/\.$/, "")}`;
  return `The platform's AI advises to ${asked}, the verdict is "${verdict.title}"${because}. The AI answers about the rule in the whole zone; the verdict counts what rose.`;
}

/** Returns what a recommendation clearly says; null if its sentences disagree or negate it. */
function readAdvice(text: string): "keep" | "relax" | null {
  const sentences = stripMarkdown(text.slice(0, MOST_CHARS))
    .split(/[.!?\n]+/)
    .filter((sentence) => !NEGATION.test(sentence));
  const isKept = sentences.some((sentence) => KEEP.test(sentence));
  const isRelaxed = sentences.some((sentence) => RELAX.test(sentence));
  if (isKept === isRelaxed) return null;
  return isKept ? "keep" : "relax";
}
