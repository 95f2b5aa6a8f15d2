import { formatNumber, formatShare } from "#lib/format.ts";
import { toLine, toLines } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";
import { describeMembers } from "../digest-message.ts";
import {
  ADVICE_HEADING,
  describeActions,
  describeAdvice,
  describeCount,
  describeCourse,
  describeEnd,
  describeMissingAdvice,
  describeNews,
  describeReason,
  describeSince,
  describeSubject,
  isAdvised,
  isNews,
  TOP_KEYS,
  TOP_LABELS,
} from "./describe-alert.ts";
import { type OutlineRow, outlineCommands, outlineVerdict } from "./describe-verdict.ts";
import { type MemberRoom, type MembersOutline, outlineMembers } from "./group-members.ts";
import { describeTopValue, type SafeLink, toSafeLinks } from "./outline-lines.ts";
import { drawSparkline } from "./text-width.ts";

/** Maximum lengths in code points, each for one piece of text. */
export interface OutlineCaps {
  readonly title: number;
  readonly headline: number;
  readonly value: number;
  /** Characters for each line of the verdict. */
  readonly verdict: number;
  readonly topRows: number;
  readonly advice: { readonly maxLines: number; readonly maxChars: number };
  readonly members: MemberRoom;
}

const DIGEST_LINE_CHARS = 300;
const MAX_DETAILS = 7;
/** Rows of a weekly digest. */
const MAX_ROWS = 24;
const DETAIL_CHARS = 300;

export const FULL_CAPS: OutlineCaps = {
  title: 200,
  headline: 500,
  value: 120,
  verdict: 300,
  topRows: 3,
  advice: { maxLines: 30, maxChars: 2_800 },
  members: { rows: 10, rowChars: 160, chars: 1_200 },
};

interface OutlineTop {
  readonly label: string;
  /** `share` as `72 %`. */
  readonly rows: readonly { readonly value: string; readonly count: string; readonly share: string }[];
}

/**
 * The parts of a message. Every text is one line that cannot move the cursor, hide text or link. It still has to be
 * escaped for the receiver's markup.
 */
export interface Outline {
  readonly status: "firing" | "advice" | "resolved";
  /** `CRITICAL firing`, `Advice` or `Resolved`. */
  readonly statusText: string;
  /** `zone 101 · rule 942100 SQL injection`. */
  readonly subject: string;
  readonly headline: string;
  /** The headline behind the verdict, for a notification. */
  readonly brief: string;
  /** Lines that a person reads first; empty if there is no verdict. */
  readonly verdict: readonly OutlineRow[];
  /** `847 in 5 minutes against usual 12 (68x)`, the alert's course, and the platform's actions. */
  readonly facts: readonly string[];
  /** Further facts. Unlike the others they may quote a request. */
  readonly details: readonly string[];
  /** Block characters; empty if nothing was counted. */
  readonly sparkline: string;
  readonly top: readonly OutlineTop[];
  /** The members of a group; null for a message about one rule. */
  readonly members: MembersOutline | null;
  /** The alerts of a digest: `zone 101 · firing: 942100, 942110`. */
  readonly digest: readonly string[];
  readonly advice: { readonly heading: string; readonly lines: readonly string[] } | null;
  /** Commands to copy. */
  readonly commands: readonly OutlineRow[];
  readonly links: readonly SafeLink[];
}

function outlineFacts(message: AlertMessage): string[] {
  const phrase = describeCount(message);
  const times = phrase === null || phrase.times === null ? "" : ` (${phrase.times})`;
  const lines = [
    phrase === null ? "" : `${phrase.count} ${phrase.against}${times}`,
    describeCourse(message),
    describeActions(message),
  ];
  return lines.filter((line) => line !== "");
}

/** Returns the message's further facts, each on one line. */
function outlineDetails({ kind, details = [] }: AlertMessage): string[] {
  const lines = details
    .slice(0, kind === "weekly" ? MAX_ROWS : MAX_DETAILS)
    .map((line) => toLine(line, DETAIL_CHARS));
  return lines.filter((line) => line !== "");
}

function outlineTop({ top }: AlertMessage, caps: OutlineCaps): OutlineTop[] {
  return TOP_KEYS.filter((key) => top[key].length > 0).map((key) => ({
    label: TOP_LABELS[key],
    rows: top[key].slice(0, caps.topRows).map(({ value, count, share }) => ({
      value: describeTopValue(key, value, caps.value),
      count: formatNumber(count),
      share: formatShare(share),
    })),
  }));
}

function outlineAdvice(message: AlertMessage, caps: OutlineCaps): Outline["advice"] {
  if (!isAdvised(message)) return null;
  const missing = describeMissingAdvice(message);
  if (missing === null) {
    return { heading: ADVICE_HEADING, lines: toLines(describeAdvice(message), caps.advice) };
  }
  return { heading: "Advice from the platform's AI", lines: [toLine(missing, 300)] };
}

/**
 * Returns the parts of a message. `transition` is for channels that add a message each time, and has only the new
 * facts: the end of a resolved alert, or the text of advice. `whole` is for channels that edit one message in place,
 * and has all facts.
 */
export function outlineAlert(message: AlertMessage, view: "transition" | "whole", caps = FULL_CAPS): Outline {
  const isResolved = message.state === "resolved" || isEnding(message.reason);
  const isOwn = isNews(message);
  const isAdvice = message.reason === "advice" && !isResolved && view === "transition";
  const isShort = view === "transition" && (isResolved || isAdvice);
  const firing = `${message.severity.toUpperCase()} ${
    message.reason === "advice" ? message.state : describeReason(message)
  }`;
  const advice = outlineAdvice(message, caps);
  return {
    status: isResolved ? "resolved" : isAdvice ? "advice" : "firing",
    statusText: isOwn
      ? message.kind === "late"
        ? "Arrived late"
        : "Weekly digest"
      : isResolved
        ? message.reason === "settled"
          ? "Settled"
          : "Resolved"
        : isAdvice
          ? "Advice"
          : firing,
    subject: toLine(describeSubject(message), caps.title),
    headline: toLine(message.headline, caps.headline),
    brief: toLine(describeNews(message), caps.headline),
    verdict: isShort || isResolved ? [] : outlineVerdict(message, caps.verdict),
    facts: isOwn
      ? []
      : isResolved
        ? [describeEnd(message)]
        : isAdvice
          ? [describeSince(message), toLine(message.disagreement ?? "", DETAIL_CHARS)].filter(
              (line) => line !== "",
            )
          : outlineFacts(message),
    details: (isShort || isResolved) && !isOwn ? [] : outlineDetails(message),
    sparkline: isShort || describeCount(message) === null ? "" : drawSparkline(message.sparkline, 60),
    top: isShort ? [] : outlineTop(message, caps),
    members: isShort ? null : outlineMembers(message, caps.members),
    digest: describeMembers(message.digest, DIGEST_LINE_CHARS),
    advice: isShort && message.reason !== "advice" ? null : advice,
    commands: isShort || isResolved ? [] : outlineCommands(message),
    links: toSafeLinks(message.links),
  };
}
