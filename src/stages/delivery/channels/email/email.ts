import type SMTPTransport from "nodemailer/lib/smtp-transport/index.js";
import { z } from "zod";
import { UsageError } from "#lib/errors.ts";
import { startDeadline } from "#lib/waiting.ts";
import { defineChannel, networkSettings, type SenderOptions, secretText } from "../../channel-definition.ts";
import { DeliveryError } from "../../delivery-error.ts";
import { ALLOWED_BY } from "../../endpoint.ts";
import { createGuardedConnector } from "../../guarded-dispatcher.ts";
import type { Notifier } from "../../notifier.ts";
import { POST_TIMEOUT_MS } from "../../post.ts";
import { refuseHost } from "../../refuse-address.ts";
import { MEMBER_ROWS, toEmailMessage } from "./email-message.ts";
import { readSettled, settleRecipients, toRefusals } from "./settle-recipients.ts";
import { toSmtpFailure } from "./smtp-failure.ts";

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
  ...networkSettings,
};

type Options = SenderOptions<typeof settings>;

const ADDRESS = /^[^\s<>()[\],;:"@\\]+@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*)$/;
const never = new AbortController().signal;

function findMistakes({ host, tls, from, to, network = {} }: Options): string[] {
  const allowPrivate = network.allowPrivateNetworks ?? false;
  const range = refuseHost(host, allowPrivate);
  const mistakes = [from, ...to]
    .filter((address) => !ADDRESS.test(address))
    .map((address) => `${JSON.stringify(address)} is not a bare address`);
  if (range !== null) mistakes.push(`host: ${host} is not a public address (${range})`);
  if (to.length === 0) mistakes.push("to: must have at least one address");
  if (tls === "none" && !allowPrivate)
    mistakes.push(`tls: none is allowed only if private addresses are allowed (${ALLOWED_BY})`);
  return mistakes;
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
    tls: { ...(network.ca === undefined ? {} : { ca: network.ca }), minVersion: "TLSv1.2" },
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
    const deadline = startDeadline(timeoutMs, signal, never);
    try {
      deadline.signal.throwIfAborted();
      const { attachments = [], ...said } = toEmailMessage(message, domain);
      const mail = {
        ...said,
        attachments: [...attachments],
        from: { name: "Longwatch", address: from },
        to: [...to],
        envelope: { from, to: rest },
        date: new Date(clock()),
        signal: deadline.signal,
      };
      // Loaded for the first mail: most processes send none, and it is a tenth of what they would load.
      const { default: nodemailer } = await import("nodemailer");
      // The transport is created for each mail, because it holds the password as plain text and every connection is
      // checked.
      const sending = nodemailer.createTransport(toTransport(options)).sendMail(mail);
      const sent = await (settled.length === 0 ? sending : sending.catch(toRefusals));
      settleRecipients(to, sent, { host, ...(onProgress === undefined ? {} : { onProgress }) });
      return { providerReference: null };
    } catch (thrown) {
      if (deadline.endedBy() === "caller") throw signal.reason;
      if (deadline.endedBy() !== "timeout") throw toSmtpFailure(thrown, host);
      const text = `no answer from ${host} in ${timeoutMs / 1_000} s`;
      throw new DeliveryError({ code: "ENDPOINT_TIMEOUT", disposition: "retry", text });
    } finally {
      deadline.release();
    }
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
