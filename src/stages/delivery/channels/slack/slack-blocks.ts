import { formatNumber, formatShare } from "#lib/format.ts";
import { toLine } from "#lib/plain-text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  ADVICE_HEADING,
  describeActions,
  describeAdvice,
  describeBriefly,
  describeCount,
  describeCourse,
  describeEnd,
  describeMissingAdvice,
  describeNews,
  describeReason,
  describeSince,
  describeSubject,
  isAdvised,
  TOP_KEYS,
  TOP_LABELS,
} from "../../message/describe-alert.ts";
import { describeMembers } from "../../message/describe-digest.ts";
import { describeTopValue } from "../../message/describe-top-value.ts";
import { type OutlineRow, outlineCommands, outlineVerdict } from "../../message/describe-verdict.ts";
import { drawSparkline } from "../../message/draw-sparkline.ts";
import { outlineMembers, partMembers, showsMembers } from "../../message/group-members.ts";
import { outlineDetails } from "../../message/outline-alert.ts";
import { toSafeLinks } from "../../message/safe-link.ts";
import {
  header,
  mrkdwn,
  packSections,
  SLACK_LIMITS,
  type SlackBlock,
  type SlackMessage,
  section,
} from "./slack-block.ts";
import { toMrkdwn, toMrkdwnCode, toMrkdwnQuote } from "./slack-text.ts";

const TOP_ROWS = 3;
const VALUE_CHARS = 120;
const ADVICE_CHARS = 2_800;
/** Maximum length of the advice below a verdict, which knows more than the rule. */
const ADVICE_CHARS_BESIDE = 600;
const VERDICT_CHARS = 200;
const HELP_CHARS = 400;
const LINK_TITLE_CHARS = 80;
/** Maximum length of an escaped link. Five links of this length fit besides everything else. */
const MAX_LINK_CHARS = 1_000;

const SIGNS: Readonly<Record<AlertMessage["severity"], string>> = {
  critical: "🔴",
  error: "🟠",
  warning: "🟡",
  info: "🔵",
};

function renderFacts(message: AlertMessage): string {
  const phrase = describeCount(message);
  const sparkline = drawSparkline(message.sparkline, 60);
  const actions = describeActions(message);
  const lines = [
    toMrkdwn(message.headline, 500),
    phrase === null
      ? ""
      : `*${phrase.count}* ${phrase.against}${phrase.times === null ? "" : ` (*${phrase.times}*)`}`,
    sparkline === "" || phrase === null ? "" : `\`${sparkline}\``,
    describeCourse(message),
    actions,
    ...outlineDetails(message).map((line) => toMrkdwn(line, 250)),
  ];
  return lines.filter((line) => line !== "").join("\n");
}

function renderRow({ label, text, isCode = false }: OutlineRow, maxChars: number): string {
  return `*${label}*: ${isCode ? toMrkdwnCode(text, maxChars) : toMrkdwn(text, maxChars)}`;
}

function renderVerdict(message: AlertMessage): SlackBlock[] {
  const rows = outlineVerdict(message, VERDICT_CHARS);
  return packSections(
    rows.map((row) => renderRow(row, VERDICT_CHARS)),
    "\n",
  );
}

function renderTop({ top }: AlertMessage): SlackBlock[] {
  const fields = TOP_KEYS.filter((key) => top[key].length > 0).map((key) => {
    const rows = top[key].slice(0, TOP_ROWS).map(({ value, count, share }) => {
      return `${toMrkdwnCode(describeTopValue(key, value, VALUE_CHARS), VALUE_CHARS)} ${formatNumber(count)} (${formatShare(share)})`;
    });
    return mrkdwn([`*${TOP_LABELS[key]}*`, ...rows].join("\n"));
  });
  return fields.length === 0 ? [] : [{ type: "section", fields }];
}

function renderAdvice(message: AlertMessage): SlackBlock {
  const missing = describeMissingAdvice(message);
  if (missing !== null) return section(`*Advice from the platform's AI*: ${toMrkdwn(missing, 300)}`);
  const quote = toMrkdwnQuote(describeAdvice(message), {
    maxLines: 30,
    maxChars: message.verdict === undefined ? ADVICE_CHARS : ADVICE_CHARS_BESIDE,
  });
  return section(`*${ADVICE_HEADING}*\n${quote}`);
}

const DIGEST_LINE_CHARS = 300;
const measureMrkdwn = (text: string) => Array.from(toMrkdwn(text, SLACK_LIMITS.section)).length;
export const MEMBER_ROWS = 8;
const MEMBER_ROW_CHARS = 120;
const MEMBER_ROOM = { rows: MEMBER_ROWS, rowChars: 110, chars: 900, measure: measureMrkdwn } as const;
/** Number of sections with names in one further message. More would exceed the limit over all blocks. */
const PART_SECTIONS = 4;
const PART_LINE_CHARS = 2_800;
const PART_ROOM = {
  chars: PART_SECTIONS * (PART_LINE_CHARS + 1),
  lineChars: PART_LINE_CHARS,
  measure: measureMrkdwn,
} as const;

function outlineRules(message: AlertMessage, elsewhere: string | null) {
  return outlineMembers(message, elsewhere === null ? MEMBER_ROOM : { ...MEMBER_ROOM, elsewhere });
}

function renderMembers(message: AlertMessage, elsewhere: string | null): SlackBlock[] {
  const members = outlineRules(message, elsewhere);
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  const lines = [
    `*${heading}*`,
    ...rows.map((row) => toMrkdwn(row, MEMBER_ROW_CHARS)),
    ...others.map((line) => toMrkdwn(line, SLACK_LIMITS.section)),
    ...(more === null ? [] : [toMrkdwn(more, MAX_MORE_CHARS)]),
  ];
  return [section(lines.join("\n"))];
}

const MAX_MORE_CHARS = 300;

/** Returns further messages with the names of the rules that do not fit into the message itself. */
export function toSlackParts(message: AlertMessage): readonly SlackMessage[] {
  const members = outlineRules(message, null);
  return partMembers(message, members?.rest ?? [], PART_ROOM).map(({ title, lines }) => ({
    text: title,
    blocks: [section(`*${title}*`), ...lines.map((line) => section(toMrkdwn(line, SLACK_LIMITS.section)))],
  }));
}

/** Returns a digest's alerts. The digest's own budget is below the limit over all blocks. */
function renderDigest({ digest }: AlertMessage): SlackBlock[] {
  const lines = describeMembers(digest, DIGEST_LINE_CHARS);
  return packSections(
    lines.map((line) => toMrkdwn(line, SLACK_LIMITS.section - 200)),
    "\n",
  );
}

/** Returns the links as text, because Slack shows a warning for a button whose clicks no app handles. */
function renderLinks(message: AlertMessage): SlackBlock[] {
  // Half a link leads nowhere: one that is too long once escaped is left out.
  const links = toSafeLinks(message.links)
    .map(({ title, href }) => `<${href.replaceAll("&", "&amp;")}|${toMrkdwn(title, LINK_TITLE_CHARS)}>`)
    .filter((link) => link.length <= MAX_LINK_CHARS);
  return packSections(links, " · ");
}

/** Returns no block if there is no command, because Slack refuses an empty block. */
function renderHelp(message: AlertMessage): SlackBlock[] {
  const rows = outlineCommands(message).map((row) => mrkdwn(renderRow(row, HELP_CHARS)));
  return rows.length === 0 ? [] : [{ type: "context", elements: rows }];
}

/**
 * Returns an alert as Block Kit. Hostile text is escaped, and only the message's own links are live. `elsewhere` names
 * the place of the rest of a long list of rules.
 */
export function toSlackMessage(
  message: AlertMessage,
  elsewhere: string | null = showsMembers(message) ? "in the next messages" : null,
): SlackMessage {
  const subject = toLine(describeSubject(message), 100);
  const headline = toMrkdwn(message.headline, 300);
  if (message.reason === "resolved") {
    const about = toMrkdwn(subject, 200);
    return {
      text: `✅ Resolved: ${toMrkdwn(describeBriefly(message), 400)}`,
      blocks: [
        section(`✅ *Resolved*: ${about}\n${headline}\n${describeEnd(message)}`),
        ...renderDigest(message),
        ...renderLinks(message),
      ],
    };
  }
  if (message.reason === "advice") {
    return {
      text: `Advice for ${toMrkdwn(subject, 200)}`,
      blocks: [
        section(`💡 ${toMrkdwn(subject, 150)}\n${describeSince(message)}`),
        renderAdvice(message),
        ...renderLinks(message),
      ],
    };
  }
  const title = `${SIGNS[message.severity]} ${message.severity.toUpperCase()} ${describeReason(message)}`;
  return {
    text: `${title}: ${toMrkdwn(describeNews(message), 300)}`,
    blocks: [
      header(`${title} · ${subject}`),
      ...renderVerdict(message),
      section(renderFacts(message)),
      ...renderLinks(message),
      ...renderHelp(message),
      ...renderMembers(message, elsewhere),
      ...renderDigest(message),
      ...renderTop(message),
      ...(isAdvised(message) ? [renderAdvice(message)] : []),
    ],
  };
}

/** Returns all that is known of an alert as one message, for a channel that updates it in place. */
export function toWholeSlackMessage(message: AlertMessage): SlackMessage {
  if (message.kind === "late" || (message.state !== "resolved" && message.reason !== "resolved")) {
    return toSlackMessage(
      message.reason === "advice" ? { ...message, reason: "first" } : message,
      "in the thread",
    );
  }
  const subject = toLine(describeSubject(message), 100);
  const headline = toMrkdwn(message.headline, 300);
  return {
    text: `✅ Resolved: ${toMrkdwn(describeBriefly(message), 400)}`,
    blocks: [
      header(`✅ Resolved · ${subject}`),
      section(`${headline}\n${describeEnd(message)}`),
      ...renderLinks(message),
      ...renderMembers(message, "in the thread"),
      ...renderDigest(message),
      ...renderTop(message),
      ...(isAdvised(message) ? [renderAdvice(message)] : []),
    ],
  };
}
