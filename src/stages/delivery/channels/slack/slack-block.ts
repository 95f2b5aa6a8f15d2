import { toSlackPlain } from "./slack-text.ts";

/**
 * Slack's limits in characters: header 150, section 3000, field 2000, 50 blocks (docs.slack.dev, Block Kit reference).
 * Messages over about 13,000 characters in all blocks are reported to fail. The budgets below add up to less, for every
 * message.
 */
export const SLACK_LIMITS = { header: 150, section: 3_000, field: 2_000, blocks: 50, total: 13_000 } as const;

export interface MrkdwnText {
  readonly type: "mrkdwn";
  readonly text: string;
  /** Prevents Slack from finding links and names on its own. */
  readonly verbatim: true;
}

export type SlackBlock =
  | { readonly type: "header"; readonly text: { type: "plain_text"; text: string; emoji: false } }
  | { readonly type: "section"; readonly text: MrkdwnText }
  | { readonly type: "section"; readonly fields: readonly MrkdwnText[] }
  | { readonly type: "context"; readonly elements: readonly MrkdwnText[] };

export interface SlackMessage {
  /** Shown in notifications and by clients without blocks. */
  readonly text: string;
  readonly blocks: readonly SlackBlock[];
}

export function mrkdwn(text: string): MrkdwnText {
  return { type: "mrkdwn", text, verbatim: true };
}

export function section(text: string): SlackBlock {
  return { type: "section", text: mrkdwn(text) };
}

export function header(text: string): SlackBlock {
  return {
    type: "header",
    text: { type: "plain_text", text: toSlackPlain(text, SLACK_LIMITS.header), emoji: false },
  };
}

/** Joins whole pieces into as few sections as possible. No section exceeds its limit. */
export function packSections(pieces: readonly string[], separator: string): SlackBlock[] {
  const texts: string[] = [];
  for (const piece of pieces) {
    const last = texts.at(-1);
    const isFull = last === undefined || last.length + separator.length + piece.length > SLACK_LIMITS.section;
    if (isFull) texts.push(piece);
    else texts[texts.length - 1] = `${last}${separator}${piece}`;
  }
  return texts.map(section);
}
