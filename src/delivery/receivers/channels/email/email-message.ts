import { createHash } from "node:crypto";
import { describeReason } from "#delivery/rules/message/describe-alert.ts";
import { toDocument } from "#delivery/rules/message/document.ts";
import { toAttachment } from "#delivery/rules/message/group-members.ts";
import { toHtml, toPlainLines, unlink } from "#delivery/rules/message/write-document.ts";
import { cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";

/** Maximum length of a subject: as much as a phone shows, and far below the limit of a header line. */
export const MAX_SUBJECT_CHARS = 150;

export interface EmailMessage {
  readonly messageId: string;
  /** Message-ID of the thread's first message. The first message has none. */
  readonly inReplyTo?: string;
  readonly references?: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  readonly priority: "high" | "normal";
  readonly headers: Readonly<Record<string, string>>;
  /** The whole list of a group's rules, if it does not fit into the text. */
  readonly attachments?: readonly { filename: string; content: string; contentType: string }[];
}

const COLORS = { critical: "#b71c1c", error: "#bf360c", warning: "#8d6e00", info: "#0d47a1" } as const;
const GREEN = "#1b5e20";
const TEXT = "text/plain; charset=utf-8";
export const MEMBER_ROWS = 20;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 200, chars: 4_000, elsewhere: "attached" } as const;

/** Returns a text for a Message-ID, because the episode's key may contain any character. */
function toThreadId({ dedupeKey }: AlertMessage): string {
  return createHash("sha256").update(dedupeKey).digest("hex").slice(0, 32);
}

/** Returns `CRITICAL firing, probably an attack`, `CRITICAL firing, advice` or `CRITICAL resolved`. */
function describeStanding(message: AlertMessage): string {
  const { reason, severity, verdict } = message;
  const state = reason === "advice" ? `${message.state}, advice` : describeReason(message);
  const said = verdict === undefined ? "" : `, ${toLine(verdict.title, 40).toLowerCase()}`;
  return `${severity.toUpperCase()} ${message.state === "resolved" ? "resolved" : `${state}${said}`}`;
}

/**
 * Returns an alert as mail. All transitions of an episode are in one thread. Message-IDs are derived from the episode's
 * key, so a mail that is sent twice has the same id. Some programs also thread by the subject. Therefore the changing
 * part is a prefix in brackets, which such programs ignore (RFC 5256, base subject), and the rest of a spike's subject
 * stays the same.
 */
export function toEmailMessage(message: AlertMessage, domain: string): EmailMessage {
  // In a preview the page once more would be taken for a second one.
  const isAddition = isEnding(message.reason) || message.reason === "advice";
  const view = isAddition ? "transition" : "whole";
  const document = toDocument(message, view, { members: MEMBERS });
  const { status, statusText, subject, headline } = document;
  const content = toAttachment(message, document.members?.rest);
  const thread = `longwatch.${toThreadId(message)}`;
  const root = `<${thread}@${domain}>`;
  // A mailbox that got no earlier mail of the alert has nothing to thread by.
  const isFirst = message.transition === 1 || message.reason === "first";
  const isUrgent = status === "firing" && (message.severity === "critical" || message.severity === "error");
  // In alerts about Longwatch itself only its name stays the same, and that name would help nobody.
  const about = message.kind === "self" && headline !== "" ? headline : subject;
  const title = cutText(`[Longwatch ${describeStanding(message)}] ${unlink(about)}`, MAX_SUBJECT_CHARS);
  return {
    messageId: isFirst ? root : `<${thread}.${message.transition}@${domain}>`,
    ...(isFirst ? {} : { inReplyTo: root, references: root }),
    subject: isFirst ? title : `Re: ${title}`,
    text: `${[unlink(`${statusText}: ${subject}`), "", ...toPlainLines(document, unlink)].join("\n")}\n`,
    html: toHtml(document, status === "resolved" ? GREEN : COLORS[message.severity]),
    priority: isUrgent && message.reason !== "advice" ? "high" : "normal",
    headers: {
      "auto-submitted": "auto-generated",
      "x-auto-response-suppress": "All",
      "x-longwatch-state": message.state,
      "x-longwatch-severity": message.severity,
    },
    ...(content === null ? {} : { attachments: [{ filename: "rules.txt", content, contentType: TEXT }] }),
  };
}
