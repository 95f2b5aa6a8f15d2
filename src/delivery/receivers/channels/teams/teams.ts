/** The channel of Teams, and an alert as its card. */

import { describeBriefly } from "#delivery/rules/message/describe-alert.ts";
import { partMembers, showsMembers } from "#delivery/rules/message/group-members.ts";
import {
  FULL_CAPS,
  type Outline,
  type OutlineCaps,
  outlineAlert,
} from "#delivery/rules/message/outline-alert.ts";
import { toMemberLines } from "#delivery/rules/message/outline-lines.ts";
import { toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import {
  defineChannel,
  type Notifier,
  networkSettings,
  type SenderOptions,
  secretText,
} from "../../channel-definition.ts";
import { openEndpoint } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, post, sendParts } from "../../post.ts";

/** Limit of a whole message, in bytes as sent (Microsoft Learn, "Create an Incoming Webhook": 28 KB). */
export const TEAMS_MAX_BYTES = 28_000;
/** Maximum number of actions that an Adaptive Card shows in Teams. Further actions are hidden in a menu. */
const MAX_ACTIONS = 6;

/** Returns the length in bytes of JSON, the unit of the limit. */
const measureJson = (text: string) => Buffer.byteLength(JSON.stringify(escapeExpressions(text))) - 2;
const MEMBER_ROWS = 10;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 160, chars: 2_000, measure: measureJson } as const;
const PART_ROOM = { chars: 22_000, lineChars: 2_000, measure: measureJson } as const;

const CAPS: OutlineCaps = { ...FULL_CAPS, members: MEMBERS };
/** Caps to try in order while the card is too large. The last fit always. The list of rules is never cut. */
const STEPS: readonly OutlineCaps[] = [
  { ...FULL_CAPS, value: 60, advice: { maxLines: 20, maxChars: 1_400 }, members: MEMBERS },
  {
    title: 80,
    headline: 150,
    value: 40,
    verdict: 120,
    topRows: 2,
    advice: { maxLines: 8, maxChars: 500 },
    members: MEMBERS,
  },
];

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

/** The envelope that a Workflows webhook takes, with one card. */
interface TeamsMessage {
  readonly type: "message";
  readonly attachments: readonly [
    {
      readonly contentType: "application/vnd.microsoft.card.adaptive";
      readonly contentUrl: null;
      readonly content: {
        readonly $schema: "http://adaptivecards.io/schemas/adaptive-card.json";
        readonly type: "AdaptiveCard";
        readonly version: "1.4";
        readonly msteams: { readonly width: "Full" };
        readonly fallbackText: string;
        readonly body: readonly RichTextBlock[];
        readonly actions?: readonly { type: "Action.OpenUrl"; title: string; url: string }[];
      };
    },
  ];
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

function renderTop({ top }: Outline): RichTextBlock[] {
  return top.flatMap(({ label, rows }, index) => [
    line([run(label, { weight: "bolder" })], index === 0 ? { separator: true } : { spacing: "small" }),
    ...rows.map(({ value, count, share }) =>
      line([run(value, { fontType: "monospace" }), run(` ${count} (${share})`)], { spacing: "none" }),
    ),
  ]);
}

function renderRows(rows: Outline["verdict"]): RichTextBlock[] {
  return rows.map(({ label, text, isCode = false }) =>
    line([run(`${label}: `, { isSubtle: true }), run(text, isCode ? { fontType: "monospace" } : {})], {
      spacing: "small",
    }),
  );
}

function renderMembers({ members }: Outline): RichTextBlock[] {
  return toMemberLines(members).map((text, index) =>
    index === 0
      ? line([run(text, { weight: "bolder" })], { separator: true })
      : line([run(text.trimStart())], { spacing: "none" }),
  );
}

function renderAdvice({ advice }: Outline): RichTextBlock[] {
  if (advice === null) return [];
  return [
    line([run(advice.heading, { weight: "bolder" })], { separator: true }),
    ...advice.lines.map((text) => line([run(text)], { spacing: "small" })),
  ];
}

function renderBody(outline: Outline, color: Color): RichTextBlock[] {
  const { statusText, subject, headline, facts, details, sparkline } = outline;
  const style = { weight: "bolder", size: "large" } as const;
  return [
    line([run(statusText, { ...style, color }), run(subject === "" ? "" : ` · ${subject}`, style)]),
    ...renderRows(outline.verdict),
    ...(headline === "" ? [] : [line([run(headline)])]),
    ...(sparkline === "" ? [] : [line([run(sparkline, { fontType: "monospace" })])]),
    ...[...facts, ...details].map((fact) => line([run(fact)], { spacing: "small" })),
    ...renderRows(outline.commands),
    ...renderMembers(outline),
    ...outline.digest.map((text) => line([run(text)], { spacing: "small" })),
    ...renderTop(outline),
    ...renderAdvice(outline),
  ].map((block) => ({ ...block, inlines: block.inlines.filter(({ text }) => text !== "") }));
}

function toCard(message: AlertMessage, caps: OutlineCaps): TeamsMessage {
  const elsewhere = showsMembers(message) ? { elsewhere: "in the next cards" } : {};
  const outline = outlineAlert(message, "transition", {
    ...caps,
    members: { ...caps.members, ...elsewhere },
  });
  const { status, statusText, links } = outline;
  const color = status === "firing" ? COLORS[message.severity] : status === "resolved" ? "good" : "accent";
  const actions = links.slice(0, MAX_ACTIONS).map(({ title, href }) => ({
    type: "Action.OpenUrl" as const,
    title: escapeExpressions(title),
    url: href,
  }));
  return envelop(
    escapeExpressions(`${statusText}: ${toLine(describeBriefly(message), caps.title)}`),
    renderBody(outline, color),
    actions,
  );
}

type Card = TeamsMessage["attachments"][0]["content"];

function envelop(
  fallbackText: string,
  body: Card["body"],
  actions: NonNullable<Card["actions"]>,
): TeamsMessage {
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
  return { type: "message", attachments: [{ contentType, contentUrl: null, content }] };
}

/** Returns an Adaptive Card of text runs, in which no text can format, cut until it fits into a message. */
export function toTeamsMessage(message: AlertMessage): TeamsMessage {
  let card = toCard(message, CAPS);
  for (const caps of STEPS) {
    if (Buffer.byteLength(JSON.stringify(card)) <= TEAMS_MAX_BYTES) break;
    card = toCard(message, caps);
  }
  return card;
}

/** Returns further cards with the names of the rules that do not fit into the card itself. */
function toTeamsParts(message: AlertMessage): readonly TeamsMessage[] {
  const rest = outlineAlert(message, "transition", CAPS).members?.rest ?? [];
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

const settings = {
  /** The URL of a flow that starts "when a Teams webhook request is received". Its query contains the signature. */
  url: secretText,
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

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
 * Sends to Microsoft Teams through Workflows. A flow cannot edit its card, so every transition is a new card. The flow
 * answers 202 before the card is shown. Later failures, for example after the flow's owner has left, are not reported
 * to Longwatch.
 * @throws {UsageError} for a bad URL
 */
function createSender(options: Options): Notifier["send"] {
  const endpoint = openEndpoint(options.name, options.url, options.network ?? {});
  return async (message, sending) => {
    const parts = renderTeams(message);
    return sendParts(parts.length, sending, async (index) => {
      await post(endpoint, {
        headers: {},
        body: JSON.stringify(parts[index]),
        timeoutMs: options.timeoutMs ?? POST_TIMEOUT_MS,
        clock: options.clock,
        signal: sending.signal,
        confirms,
      });
      return null;
    });
  };
}

export const teams = defineChannel({
  kind: "teams",
  settings,
  example: { url: "https://flows.example/workflows/1?sig=example-signature" },
  capabilities: {
    rate: { perMinute: 20, digest: { in: "list", maxChars: 8_000, charsBeside: 2 } },
    longestPauseMs: 2 * 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: { most: TEAMS_MAX_BYTES, unit: "bytes" }, memberRows: MEMBER_ROWS },
  },
  render: renderTeams,
  createSender,
});
