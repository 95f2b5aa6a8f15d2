import { formatDecimal, formatDuration, formatNumber, showTime } from "#lib/format.ts";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { toLine } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { ACTION_CLASSES, type ChangeKind } from "#model/kinds.ts";
import { isChangeKind, isRuleKind } from "#model/rules.ts";
import { isEnding, isPersons } from "#model/words.ts";
import { nameZone } from "#model/zones.ts";

/** Returns `2026-11-21 14:03 UTC`, or the time without the day. */
export function formatTime(atMs: number, part: "full" | "clock" = "full"): string {
  const shown = showTime(atMs - (atMs % MINUTE_MS));
  return part === "full" ? `${shown} UTC` : `${shown.slice(11)} UTC`;
}

const CHANGE_WORDS: Readonly<Record<ChangeKind, string>> = {
  "action-change": "changed action",
  "silent-rule": "silent rule",
};

/** Returns whether a message is over from the beginning: there is no other one about its subject. */
export function isNews({ kind }: Pick<AlertMessage, "kind">): boolean {
  return kind === "late" || kind === "weekly";
}

/** Returns whether an alert counts something in a window. Neither a change of a rule nor Longwatch itself has a size. */
function isCounted(message: AlertMessage): boolean {
  const { kind, threshold } = message;
  // The absence of events has no count.
  if (kind === "custom-condition") return threshold > 0;
  return kind !== "self" && !isNews(message) && !isChangeKind(kind);
}

/** Returns the reason of the transition in a few words: `firing`, `getting worse`, `still firing`, ... */
export function describeReason(message: AlertMessage): string {
  switch (message.reason) {
    case "first":
      return message.kind === "late"
        ? "arrived late"
        : message.kind === "weekly"
          ? "weekly digest"
          : message.state;
    case "join":
      return isChangeKind(message.kind) ? "further rules" : "new attackers";
    case "again":
      return "a second wave";
    case "worse":
      return message.isAgain === true ? "firing again" : "getting worse";
    case "repeat":
      if (message.isAgain === true) return "firing again";
      return message.state === "acknowledged" ? "acknowledged, still active" : "still firing";
    case "advice":
      return "advice";
    case "turned":
    case "verdict":
      return "the verdict has changed";
    case "acknowledged":
      return "acknowledged";
    case "assigned":
      return "assigned";
    case "commented":
      return "commented";
    case "settled":
      return "settled";
    case "resolved":
      return "resolved";
    default:
      return message.reason satisfies never;
  }
}

/** Returns `zone 101 (shop) · rule 942100 SQL injection` or `zone 101 · incident`. Hostile: it quotes the log. */
export function describeSubject(message: AlertMessage): string {
  const zone = message.zoneId === null ? "" : nameZone(message.zoneId, message.zoneName);
  if (message.kind === "self") return zone === "" ? "Longwatch" : `Longwatch · ${zone}`;
  if (message.kind === "weekly") return "Longwatch · weekly digest";
  if (message.kind === "late") return `${zone} · late events`;
  if (message.kind === "sources") return zone === "" ? "incident" : `${zone} · incident`;
  if (isChangeKind(message.kind)) return `${zone} · ${CHANGE_WORDS[message.kind]}`;
  if (message.kind === "custom-condition")
    return `${zone} · custom ${message.ruleId?.replace(":", " ") ?? "condition"}`;
  const rule = [message.ruleId, message.ruleTitle].filter((part) => part !== null && part !== "").join(" ");
  return [zone, rule === "" ? "" : `rule ${rule}`].filter((part) => part !== "").join(" · ");
}

/** Returns the headline behind the verdict, for a place that shows nothing else. The end of an alert has no verdict. */
function describeNews(message: AlertMessage, headline = message.headline): string {
  const { verdict, state, reason } = message;
  const isOver = state === "resolved" || isPersons(reason);
  return verdict === undefined || isOver ? headline : `${verdict.title} · ${headline}`;
}

/**
 * Returns the headline behind the verdict. The subject precedes the headline unless that already names the rules or the
 * attackers.
 */
export function describeBriefly(message: AlertMessage): string {
  const { headline, ruleId, rules, kind } = message;
  const isRule = toLine(ruleId ?? "", 100) !== "";
  const isNamed =
    kind === "sources" ||
    kind === "custom-condition" ||
    rules !== undefined ||
    (isRule && headline.includes(ruleId ?? ""));
  const named =
    isNamed && toLine(headline, 100) !== "" ? headline : `${describeSubject(message)}: ${headline}`;
  return describeNews(message, named);
}

export interface CountPhrase {
  readonly count: string;
  /** `in 5 minutes against usual 12`. */
  readonly against: string;
  /** `68x`; null if the factor would mean nothing. */
  readonly times: string | null;
}

/** Returns the count and the usual count; null for an alert that counts nothing. */
export function describeCount(message: AlertMessage): CountPhrase | null {
  if (!isCounted(message)) return null;
  const minutes = `in ${formatNumber(message.windowMinutes)} ${message.windowMinutes === 1 ? "minute" : "minutes"}`;
  // Below that it would be shown as a multiple of nothing.
  const isCustom = message.kind === "custom-condition";
  const isUsual = message.usual >= 0.05 && message.times !== null;
  return {
    count: `${formatNumber(message.count)}${message.unit === undefined ? "" : ` ${message.unit}`}`,
    against: isCustom
      ? `${minutes}, the limit is ${formatNumber(message.threshold - 1)}`
      : isUsual
        ? `${minutes} against usual ${formatNumber(message.usual)}`
        : `${minutes}, usually none`,
    times: isUsual && message.times !== null ? `${formatNumber(message.times)}x` : null,
  };
}

/**
 * Returns `blocked 700 · logged 147`; empty if nothing was counted. The actions, like the top lists, cover all events
 * since the alert's start. If their sum differs from the count, `of 5,912 events: ` precedes them. Empty for a first message
 * with a verdict, which has counted them.
 */
export function describeActions({ actions, count, verdict, reason }: AlertMessage): string {
  if (verdict !== undefined && reason === "first") return "";
  const { blocked, challenged, logged, other } = actions;
  const total = blocked + challenged + logged + other;
  const parts = ACTION_CLASSES.filter((action) => actions[action] > 0).map(
    (action) => `${action} ${formatNumber(actions[action])}`,
  );
  return `${total === 0 || total === count ? "" : `of ${formatNumber(total)} events: `}${parts.join(" · ")}`;
}

/** Returns `since 2026-11-21 14:03 UTC`. */
function describeSince({ startedAt }: AlertMessage): string {
  return `since ${formatTime(startedAt)}`;
}

/** Returns `alert 7 · since 2026-11-21 14:03 UTC · peak 912 · score 9.4 · threshold 45`. */
export function describeCourse(message: AlertMessage): string {
  const isOne = message.alertId > 0 && message.digest === undefined;
  const since = `${isOne ? `alert ${message.alertId} · ` : ""}${describeSince(message)}`;
  if (!isCounted(message)) return since;
  const { kind, peak, score, threshold } = message;
  if (kind === "custom-condition") return `${since} · peak ${formatNumber(peak)}`;
  return `${since} · peak ${formatNumber(peak)} · score ${formatDecimal(score)} · threshold ${formatNumber(threshold)}`;
}

/** Returns `after 23 min (2026-11-21 14:03 UTC to 14:26 UTC), peak 912 in 5 min`. */
export function describeEnd(message: AlertMessage): string {
  const { startedAt, endedAt } = message;
  const span =
    endedAt === null
      ? describeSince(message)
      : `after ${formatDuration(endedAt - startedAt)} (${formatTime(startedAt)} to ${formatTime(
          endedAt,
          formatTime(startedAt).slice(0, 10) === formatTime(endedAt).slice(0, 10) ? "clock" : "full",
        )})`;
  if (!isCounted(message)) return span;
  return `${span}, peak ${formatNumber(message.peak)} in ${formatNumber(message.windowMinutes)} min`;
}

/** The first lines of a message. */
export interface Head {
  readonly status: "firing" | "advice" | "resolved";
  /** `CRITICAL firing`, `Advice` or `Resolved`. */
  readonly statusText: string;
  /** `zone 101 · rule 942100 SQL injection`. */
  readonly subject: string;
  readonly headline: string;
  /** The headline behind the verdict, for a notification; the subject if there is no headline. */
  readonly brief: string;
}

/** The parts of an alert without its verdict and the members of its group. */
interface DescribedAlert {
  readonly head: Head;
  /** True for a message about the end of an alert, or about its advice, alone. */
  readonly isShort: boolean;
  readonly facts: { readonly lines: readonly string[]; readonly counts: readonly number[] };
  readonly details: readonly string[];
  readonly advice: Advice | null;
}

/** Returns an alert in words. Only a `transition` may leave out facts that an earlier message has shown. */
export function describeAlert(
  message: AlertMessage,
  view: "transition" | "whole",
  caps: { readonly title: number; readonly headline: number },
): DescribedAlert {
  const head = describeHead(message, view, caps);
  const isOpen = head.status === "firing";
  const isShort = view === "transition" && !isOpen;
  return {
    head,
    isShort,
    facts: describeFacts(message, head.status),
    details: isOpen || isNews(message) ? [...describeAssignee(message), ...(message.details ?? [])] : [],
    advice: isShort && message.reason !== "advice" ? null : describeAdvice(message),
  };
}

/** The headline of the assignment names the person already. */
function describeAssignee({ assignedTo, reason }: AlertMessage): string[] {
  return assignedTo === undefined || reason === "assigned" ? [] : [`assigned to ${assignedTo}`];
}

/** Returns the head of a message as harmless lines. Only a `transition` is about its advice alone. */
function describeHead(
  message: AlertMessage,
  view: "transition" | "whole",
  caps: { readonly title: number; readonly headline: number },
): Head {
  const { kind, reason, state, severity } = message;
  const isAdvice = reason === "advice" && view === "transition";
  const status = state === "resolved" || isEnding(reason) ? "resolved" : isAdvice ? "advice" : "firing";
  const firing = `${severity.toUpperCase()} ${reason === "advice" ? state : describeReason(message)}`;
  const texts = { firing, advice: "Advice", resolved: reason === "settled" ? "Settled" : "Resolved" };
  const own = kind === "late" ? "Arrived late" : "Weekly digest";
  const subject = toLine(describeSubject(message), caps.title);
  return {
    status,
    statusText: isNews(message) ? own : texts[status],
    subject,
    headline: toLine(message.headline, caps.headline),
    brief: toLine(describeNews(message), caps.headline) || subject,
  };
}

/** Returns the end of an alert, or its count, its course and the platform's actions, and the counts to draw. */
function describeFacts(message: AlertMessage, status: Head["status"]): DescribedAlert["facts"] {
  const phrase = describeCount(message);
  const counts = phrase === null ? [] : message.sparkline;
  if (isNews(message)) return { lines: [], counts };
  if (status === "resolved") return { lines: [describeEnd(message)], counts };
  if (status === "advice") {
    return { lines: [describeSince(message), toLine(message.disagreement ?? "", 300)], counts };
  }
  const times = phrase === null || phrase.times === null ? "" : ` (${phrase.times})`;
  const counted = phrase === null ? "" : `${phrase.count} ${phrase.against}${times}`;
  return { lines: [counted, describeCourse(message), describeActions(message)], counts };
}

/** Returns whether the platform advises on the alert: on rules, and not on sources, changes or Longwatch itself. */
export function isAdvised({ kind }: Pick<AlertMessage, "kind">): boolean {
  return isRuleKind(kind);
}

/** Heading of every shown recommendation. It names the author, because an attacker may influence the text. */
const ADVICE_HEADING = "Advice from the platform's AI (not verified, nothing was applied)";

interface Advice {
  readonly heading: string;
  /** Hostile text of several lines; the reason if there is no advice. */
  readonly text: string;
  readonly isMissing: boolean;
}

/**
 * Returns the recommendation below a line with its subject; null if the platform gives none for such an alert. The
 * platform answers about a rule in the whole zone, so the text may name sources that have nothing to do with the alert.
 */
export function describeAdvice({ kind, ruleId, zoneId, zoneName, advice }: AlertMessage): Advice | null {
  if (!isAdvised({ kind })) return null;
  const { state, text, reason } = advice;
  if (state !== "present" || text === null || text.trim() === "") {
    const none = reason === null || reason === "" ? "none available" : `none: ${reason}`;
    const missing = state === "pending" ? "requested, not received yet" : toLine(none, 300);
    return { heading: "Advice from the platform's AI", text: missing, isMissing: true };
  }
  const rule = ruleId === "" ? "events without a rule" : `rule ${toLine(ruleId ?? "", 100)}`;
  const isOfRule = ruleId !== null && zoneId !== null;
  const about = isOfRule ? `About ${rule} in all of ${nameZone(zoneId, zoneName)}:\n` : "";
  return { heading: ADVICE_HEADING, text: `${about}${stripMarkdown(text)}`, isMissing: false };
}

export const TOP_LABELS: Readonly<Record<keyof AlertMessage["top"], string>> = {
  ips: "IP",
  asns: "Network",
  countries: "Country",
  paths: "Path",
  userAgents: "User agent",
  ja4s: "JA4",
};

export const TOP_KEYS = ["ips", "asns", "countries", "paths", "userAgents", "ja4s"] as const;
