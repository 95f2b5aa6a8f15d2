/** The channel of Teams, and an alert as its card. */

import { describeBriefly } from "#delivery/rules/message/describe-alert.ts";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import { type Dialect, fit, type WrittenBlock } from "#delivery/rules/message/write-document.ts";
import { toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { defineChannel, POSTED_CHAT, secretText, textSettings } from "../../channel-definition.ts";
import { createPoster } from "../../post.ts";

/** Limit of a whole message, in bytes as sent (Microsoft Learn, "Create an Incoming Webhook": 28 KB). */
export const TEAMS_MAX_BYTES = 28_000;
/** Maximum number of actions that an Adaptive Card shows in Teams. Further actions are hidden in a menu. */
const MAX_ACTIONS = 6;

/** Returns the length in bytes of JSON, the unit of the limit. */
const measureJson = (text: string) => Buffer.byteLength(JSON.stringify(escapeExpressions(text))) - 2;
const MEMBER_ROWS = 10;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 160, chars: 2_000, measure: measureJson } as const;
const PART_ROOM = { chars: 22_000, lineChars: 2_000, measure: measureJson } as const;

type Color = "default" | "accent" | "good" | "warning" | "attention";

interface TextRun {
  readonly type: "TextRun";
  readonly text: string;
  readonly weight?: "bolder";
  readonly size?: "large";
  readonly color?: Color;
  readonly isSubtle?: true;
  readonly fontType?: "monospace";
}

interface RichTextBlock {
  readonly type: "RichTextBlock";
  readonly separator?: true;
  readonly spacing?: "none" | "small";
  readonly inlines: readonly TextRun[];
}

const COLORS: Readonly<Record<AlertMessage["severity"], Color>> = {
  critical: "attention",
  error: "attention",
  warning: "warning",
  info: "accent",
};

/**
 * Escapes the date functions of cards and the expressions of templates and flows. Text runs have no Markdown, so
 * nothing else needs escaping.
 */
function escapeExpressions(text: string): string {
  return text.replace(/([{$@])(?=\{)/g, "$1 ");
}

function run(text: string, style: Omit<TextRun, "type" | "text"> = {}): TextRun {
  return { type: "TextRun", text: escapeExpressions(text), ...style };
}

function line(
  inlines: readonly TextRun[],
  style: Omit<RichTextBlock, "type" | "inlines"> = {},
): RichTextBlock {
  return { type: "RichTextBlock", ...style, inlines };
}

const RUNS: Dialect<TextRun> = {
  label: (text) => run(`${text}: `, { isSubtle: true }),
  own: (text) => run(text),
  text: (text) => run(text),
  code: (text) => run(text, { fontType: "monospace" }),
  link: (text) => run(text),
};

/** Returns the lines of a block. A heading separates the first block of a paragraph from the paragraph before. */
function toLines({ name, heading, written }: WrittenBlock<TextRun>, isFirst: boolean): RichTextBlock[] {
  const isList = name === "top" || name === "members";
  const style =
    name === "headline" || name === "curve" ? {} : ({ spacing: isList ? "none" : "small" } as const);
  const above = isFirst ? ({ separator: true } as const) : ({ spacing: "small" } as const);
  return [
    ...(heading === "" ? [] : [line([run(heading, { weight: "bolder" })], above)]),
    ...written.map((runs) => line(runs, style)),
  ];
}

/** Returns the envelope that a Workflows webhook takes, with one card. */
function envelop(
  fallbackText: string,
  body: readonly RichTextBlock[],
  actions: readonly { readonly type: "Action.OpenUrl"; readonly title: string; readonly url: string }[],
) {
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    msteams: { width: "Full" },
    fallbackText,
    body,
    ...(actions.length === 0 ? {} : { actions }),
  } as const;
  const contentType = "application/vnd.microsoft.card.adaptive";
  return { type: "message", attachments: [{ contentType, contentUrl: null, content }] } as const;
}

function open(message: AlertMessage): Document {
  const elsewhere = showsMembers(message) ? "in the next cards" : undefined;
  return toDocument(message, "transition", { members: { ...MEMBERS, elsewhere } });
}

/** Returns an Adaptive Card of text runs, in which no text can format, cut until it fits into a message. */
export function toTeamsMessage(message: AlertMessage) {
  const document = open(message);
  const { status, statusText, subject, links } = document;
  const color = status === "firing" ? COLORS[message.severity] : status === "resolved" ? "good" : "accent";
  const style = { weight: "bolder", size: "large" } as const;
  const title = [
    run(statusText, { ...style, color }),
    ...(subject === "" ? [] : [run(` · ${subject}`, style)]),
  ];
  const actions = links.slice(0, MAX_ACTIONS).map(({ title, href }) => ({
    type: "Action.OpenUrl" as const,
    title: escapeExpressions(title),
    url: href,
  }));
  const brief = escapeExpressions(`${statusText}: ${toLine(describeBriefly(message), 200)}`);
  const write = (paragraphs: WrittenBlock<TextRun>[][]) => {
    const lines = paragraphs.flatMap((blocks) =>
      blocks.flatMap((block, index) => (block.name === "links" ? [] : toLines(block, index === 0))),
    );
    return envelop(brief, [line(title), ...lines], actions);
  };
  return fit(document, RUNS, write, (card) => Buffer.byteLength(JSON.stringify(card)) - TEAMS_MAX_BYTES);
}

/** Returns further cards with the names of the rules that do not fit into the card itself. */
function toTeamsParts(message: AlertMessage) {
  const rest = open(message).members?.rest ?? [];
  return partMembers(message, rest, PART_ROOM).map(({ title, lines }) =>
    envelop(
      escapeExpressions(title),
      [
        line([run(title, { weight: "bolder" })]),
        ...lines.map((text) => line([run(text)], { spacing: "small" })),
      ],
      [],
    ),
  );
}

function renderTeams(message: AlertMessage) {
  return [toTeamsMessage(message), ...toTeamsParts(message)];
}

/**
 * Returns whether Teams has the card: a flow answers 202, a connector 200 with `1` or nothing. A connector also answers
 * 200 if it could not deliver, with a text that names the status.
 */
function confirms({ status, body }: { readonly status: number; readonly body: string }): boolean | number {
  if (status === 202 || ["", "1"].includes(body.trim())) return true;
  return Number(/HTTP error (\d{3})\b/.exec(body)?.[1] ?? Number.NaN) || false;
}

/**
 * Microsoft Teams through Workflows. A flow cannot edit its card, so every transition is a new card. The flow answers 202
 * before the card is shown. Later failures, for example after the flow's owner has left, are not reported to Longwatch.
 */
export const teams = defineChannel({
  kind: "teams",
  settings: {
    /** The URL of a flow that starts "when a Teams webhook request is received". Its query contains the signature. */
    url: secretText,
    ...textSettings,
  },
  example: { url: "https://flows.example/workflows/1?sig=example-signature" },
  capabilities: {
    ...POSTED_CHAT,
    rate: { perMinute: 20, digest: { in: "list", maxChars: 8_000, charsBeside: 2 } },
    limits: { message: { most: TEAMS_MAX_BYTES, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: renderTeams,
  createSender: createPoster(renderTeams, confirms),
});
