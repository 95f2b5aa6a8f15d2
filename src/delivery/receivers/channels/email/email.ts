/** The channel of email, and an alert as mail. */
import { createHash } from "node:crypto";
import type SMTPTransport from "nodemailer/lib/smtp-transport/index.js";
import { z } from "zod";
import { describeReason } from "#delivery/rules/message/describe-alert.ts";
import { toDocument } from "#delivery/rules/message/document.ts";
import { toAttachment } from "#delivery/rules/message/group-members.ts";
import { toHtml, toPlainLines, unlink } from "#delivery/rules/message/write-document.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { isEnding } from "#model/words.ts";
import {
  defineChannel,
  type Notifier,
  type SenderOptions,
  secretText,
  textSettings,
} from "../../channel-definition.ts";
import { DeliveryError } from "../../delivery-error.ts";
import { createGuardedConnector, findHostMistakes, findReadable, toTlsOptions } from "../../endpoint.ts";
import { POST_TIMEOUT_MS, toUnreachable, withinTime } from "../../post.ts";

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
const MEMBER_ROWS = 20;
const MEMBERS = { rows: MEMBER_ROWS, rowChars: 200, chars: 4_000, elsewhere: "attached" } as const;

/** Returns a text for a Message-ID, because the episode's key may contain any character. */
function toThreadId({ dedupeKey }: AlertMessage): string {
  return createHash("sha256").update(dedupeKey).digest("hex").slice(0, 32);
}

/** Returns `CRITICAL firing, probably an attack`, `CRITICAL firing, advice` or `CRITICAL resolved`. */
function describeState(message: AlertMessage): string {
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
  const title = cutText(`[Longwatch ${describeState(message)}] ${unlink(about)}`, MAX_SUBJECT_CHARS);
  return {
    messageId: isFirst ? root : `<${thread}.${message.transition}.${message.reason}@${domain}>`,
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

const settings = {
  host: z.string().regex(/^[A-Za-z0-9.:-]{1,253}$/, "must be a host name or an address"),
  /** Port 587 uses `starttls`, port 465 `implicit`. */
  port: z.number().int().min(1).max(65_535).default(587),
  /** `starttls`: no mail is sent before TLS has started; `implicit`: TLS from the first byte; `none`: private networks only. */
  tls: z.enum(["starttls", "implicit", "none"]).default("starttls"),
  login: z.strictObject({ user: z.string().min(1), password: secretText }).optional(),
  /** Addresses without a name, such as `alerts@example.com`. */
  from: z.string().min(3).max(254),
  to: z.array(z.string().min(3).max(254)).min(1).max(50),
  ...textSettings,
};

type Options = SenderOptions<typeof settings>;

const ADDRESS = /^[^\s<>()[\],;:"@\\]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)$/;

function findMistakes({ host, tls, from, to, network = {} }: Options): string[] {
  const mistakes = [from, ...to]
    .filter((address) => !ADDRESS.test(address))
    .map((address) => `${JSON.stringify(address)} is not a bare address`);
  mistakes.push(...findHostMistakes(host, network).map((mistake) => `host: ${mistake}`));
  if (to.length === 0) mistakes.push("to: must have at least one address");
  return [...mistakes, ...findReadable("tls: none", tls === "none", network)];
}

function toTransport({ host, port, tls, login, network = {} }: Options): SMTPTransport.Options {
  const connect = createGuardedConnector(network);
  return {
    host,
    port,
    secure: tls === "implicit",
    requireTLS: tls === "starttls",
    ignoreTLS: tls === "none",
    // The peer's address is checked before a byte is sent; TLS starts over that checked socket.
    getSocket(_options, callback) {
      connect({ hostname: host, host, port: String(port), protocol: "smtp:" }, (...[error, connection]) => {
        if (error === null) callback(null, { connection });
        else callback(error);
      });
    },
    tls: toTlsOptions(network, undefined),
    ...(login === undefined ? {} : { auth: { user: login.user, pass: login.password.reveal() } }),
    // The mail contains its text only: nothing may be read from a file or fetched.
    disableFileAccess: true,
    disableUrlAccess: true,
  };
}

/**
 * Sends mail by SMTP, one thread per alert. Because of the Message-ID, most mail programs show a mail that arrives
 * twice only once. A retry goes to the recipients that the server deferred.
 * @throws {UsageError} for a bad host or address, listing every mistake
 */
function createSender(options: Options): Notifier["send"] {
  const { name, host, from, to, clock, timeoutMs = POST_TIMEOUT_MS } = options;
  const mistakes = findMistakes(options);
  if (mistakes.length > 0) throw new UsageError(mistakes.map((mistake) => `channel ${name}: ${mistake}`));
  const domain = ADDRESS.exec(from)?.[1] ?? "";
  return async (message, { signal, progress, onProgress }) => {
    const settled = readSettled(progress);
    const rest = to.filter((address) => !settled.includes(address));
    if (rest.length === 0) return { providerReference: null };
    return withinTime(
      { host, timeoutMs, signal },
      async (until) => {
        const { attachments = [], ...said } = toEmailMessage(message, domain);
        const mail = {
          ...said,
          attachments: [...attachments],
          from: { name: "Longwatch", address: from },
          to: [...to],
          envelope: { from, to: rest },
          date: new Date(clock()),
          signal: until,
        };
        // Loaded for the first mail: most processes send none, and it is a tenth of what they would load.
        const { default: nodemailer } = await import("nodemailer");
        // The transport is created for each mail, because it holds the password as plain text and every connection is
        // checked.
        const sending = nodemailer.createTransport(toTransport(options)).sendMail(mail);
        const sent = await (settled.length === 0 ? sending : sending.catch(toRefusals));
        settleRecipients(to, sent, { host, ...(onProgress === undefined ? {} : { onProgress }) });
        return { providerReference: null };
      },
      toSmtpFailure,
    );
  };
}

export const email = defineChannel({
  kind: "email",
  settings,
  example: {
    host: "mail.example",
    login: { user: "longwatch", password: "example-password" },
    from: "alerts@longwatch.example",
    to: ["on-call@company.example"],
  },
  capabilities: {
    rate: { perMinute: 20, digest: { in: "list", maxChars: 15_000, charsBeside: 2 } },
    // Mail servers block a client that connects too often.
    longestPauseMs: 5 * 60_000,
    laterTransitions: "post-anew",
    showsAcknowledgements: false,
    renewAfterMs: null,
    limits: { message: null, memberRows: MEMBER_ROWS },
  },
  render: (message) => [toEmailMessage(message, "longwatch.example")],
  createSender,
});

const addresses = z.array(z.string());
type Outcome = Pick<SMTPTransport.SentMessageInfo, "accepted" | "rejectedErrors">;

/** Returns the recipients that an earlier attempt settled: they have the mail, or the server refused them for good. */
function readSettled(progress: string | null | undefined): readonly string[] {
  try {
    return addresses.parse(JSON.parse(progress ?? "[]"));
  } catch {
    return [];
  }
}

/** Returns the outcome of a mail that the server refused for every recipient. Throws any other error again. */
function toRefusals(thrown: unknown): Outcome {
  const { rejected, rejectedErrors } = thrown as { rejected?: unknown } & Partial<Outcome>;
  if (rejected === undefined || rejectedErrors === undefined) throw thrown;
  return { accepted: [], rejectedErrors };
}

/**
 * Throws if the server deferred a recipient, after it gave the settled recipients to `onProgress`, so that the next
 * attempt goes to the deferred ones only. A recipient that the server refused for good is skipped, because the others
 * have the mail.
 */
function settleRecipients(
  to: readonly string[],
  { accepted, rejectedErrors = [] }: Outcome,
  { host, onProgress }: { readonly host: string; readonly onProgress?: (progress: string) => void },
): void {
  const deferrals = rejectedErrors.filter(
    ({ responseCode = 0 }) => responseCode >= 400 && responseCode < 500,
  );
  const deferred = new Set(deferrals.map(({ recipient = "" }) => recipient.toLowerCase()));
  if (deferred.size === 0) return;
  const settled = to.filter((address) => !deferred.has(address.toLowerCase()));
  if (accepted.length > 0) onProgress?.(JSON.stringify(settled));
  const text = `${host} deferred ${deferred.size} of ${to.length} recipients`;
  throw new DeliveryError({ code: "RECIPIENT_DEFERRED", disposition: "retry", text });
}

const UNTRUSTED = /self-signed certificate|issuer certificate|verify the first certificate/;

/**
 * Returns the error of a failed SMTP exchange: a 4xx may succeed later, a 5xx never will. Only the code of the server's
 * reply is repeated, because its text may contain our message.
 */
function toSmtpFailure(thrown: unknown, host: string): DeliveryError {
  const error: Error & { responseCode?: unknown } = toError(thrown);
  const { responseCode } = error;
  if (typeof responseCode === "number" && responseCode >= 400) {
    const text = `${host} answered ${responseCode}`;
    return responseCode < 500
      ? new DeliveryError({ code: "ENDPOINT_UNAVAILABLE", disposition: "retry", text })
      : new DeliveryError({ code: "ENDPOINT_REJECTED", disposition: "give-up", text });
  }
  // The mail library replaces Node's code by its own, and keeps the text.
  const cause = UNTRUSTED.test(error.message)
    ? Object.assign(new Error(), { code: "SELF_SIGNED_CERT_IN_CHAIN" })
    : error;
  return toUnreachable(error, host, cause);
}
