/** The operations on channels. */
import { z } from "zod";
import { parseDetails } from "#alerts/rules/alert-record.ts";
import { buildTestMessage } from "#alerts/rules/message/self-message.ts";
import { readAlert } from "#db/alerts/alert-reports.ts";
import { readChannelStatuses } from "#db/delivery/channel-states.ts";
import { type Notifier, templateOf } from "#delivery/receivers/channel-definition.ts";
import { findChannel } from "#delivery/receivers/channels/registry.ts";
import { describeFailure } from "#delivery/receivers/delivery-error.ts";
import { applyTemplate, findTemplateFault, MAX_TEMPLATE_CHARS } from "#delivery/rules/message/template.ts";
import { describeCircuit } from "#delivery/rules/plan-delivery.ts";
import { showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";
import { IsoTime, Name, notFound, RowId, requireEveryZone, Text, toIsoOrNull } from "#operations/fields.ts";
import { type Cell, defineChange, defineQuery } from "#operations/operation.ts";
import { ChannelName, channelReplay } from "./deliveries.ts";

const TAG = "Deliveries";
const MAX_NAME_CHARS = 64;
const MAX_TEXT_CHARS = 160;

const ChannelItem = z
  .object({
    name: Name,
    kind: Name.nullable().describe("Null if the configuration no longer has the channel."),
    isConfigured: z.boolean(),
    circuit: Name.describe("One of closed, open, half-open, disabled; closed if nothing was ever sent."),
    retryAt: IsoTime.nullable().describe("When an open circuit lets one message through."),
    waiting: z.number().int(),
    dead: z.number().int(),
    lastError: Text.nullable().describe("May quote the receiver."),
    perMinute: z
      .number()
      .nullable()
      .describe("The most messages in a minute. Null if this process does not have the channel."),
  })
  .meta({ id: "ChannelItem" });

type ChannelItem = z.infer<typeof ChannelItem>;

const list = defineQuery({
  name: "channels.list",
  summary: "List channels with their state",
  http: ["GET", "/api/v1/channels"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({}),
  output: z.object({ items: z.array(ChannelItem) }),
  command: {
    examples: ["channels list", "channels list --json"],
    help: "DELIVERS says whether messages are sent at the moment. Channels that the configuration no longer has are listed if they were used.",
    columns: [
      { head: "CHANNEL", get: ({ name }) => shortenText(name, MAX_NAME_CHARS) },
      { head: "KIND", get: ({ kind }) => kind ?? "not configured" },
      { head: "DELIVERS", get: toCircuitCell },
      { head: "PENDING", get: ({ waiting }) => String(waiting) },
      { head: "DEAD", get: ({ dead }) => (dead === 0 ? "0" : { text: String(dead), style: "red" }) },
      {
        head: "LAST ERROR",
        get: ({ lastError }) => (lastError === null ? "" : shortenText(lastError, MAX_TEXT_CHARS)),
      },
    ],
    empty: "No channels.",
  },
  run: async ({ caller, db, service }) => {
    requireEveryZone(caller);
    const statuses = new Map((await readChannelStatuses(db)).map((one) => [one.channel, one]));
    const kinds = new Map(service.alerting().channels.map(({ name, kind }) => [name, kind]));
    const names = [...new Set([...kinds.keys(), ...statuses.keys()])].sort();
    const items = names.map((name) => {
      const status = statuses.get(name);
      const circuit = status === undefined ? "closed" : describeCircuit(status, status.nowMs);
      return {
        name,
        kind: kinds.get(name) ?? null,
        isConfigured: kinds.has(name),
        circuit,
        retryAt: toIsoOrNull(circuit === "open" ? (status?.retryAtMs ?? null) : null),
        waiting: status?.waiting ?? 0,
        dead: status?.dead ?? 0,
        lastError: status?.lastError ?? null,
        perMinute: service.notifiers.get(name)?.capabilities.rate.perMinute ?? null,
      };
    });
    return { items };
  },
});

/** The command line has a test of its own, which opens the channel with the settings of its environment. */
const test = defineChange({
  name: "channels.test",
  summary: "Send one test message on a channel",
  description:
    "The message is sent once, by the process that answers, without the outbox. A test incident is resolved again.",
  http: ["POST", "/api/v1/channels/:name/test"],
  tag: TAG,
  scope: "act",
  input: z.strictObject({ name: ChannelName.describe("The channel's name.") }),
  output: z.object({ isDelivered: z.boolean(), code: Name.nullable(), text: Text }),
  isLong: true,
  run: async ({ caller, now, service }, { name }) => {
    requireEveryZone(caller);
    const notifier = service.notifiers.get(name);
    if (notifier === undefined) throw notFound(`channel ${name}`);
    const output = await testChannel(notifier, now, []);
    const details = { isDelivered: output.isDelivered };
    return { output, audit: { action: "channel.tested", subject: `channel ${name}`, details } };
  },
});

const preview = defineQuery({
  name: "channels.preview",
  summary: "Show what a channel would be sent for an alert, and send nothing",
  http: ["GET", "/api/v1/channels/:name/preview"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({
    name: ChannelName.describe("The channel's name."),
    alert: RowId.describe("The alert's number."),
    template: z
      .string()
      .min(1)
      .max(MAX_TEMPLATE_CHARS)
      .optional()
      .describe("Try this template instead of the channel's own."),
  }),
  output: z.object({
    kind: Name,
    fault: Text.nullable().describe("Why the template cannot be rendered; the standard message is shown."),
    messages: z
      .array(z.string().meta({ masked: "text" }))
      .describe("The bodies, in order. Those that are objects are JSON."),
  }),
  command: {
    examples: [
      "channels preview chat --alert 17",
      "channels preview chat --alert 17 --template '{{ headline }}'",
    ],
    help: "Shows the latest message of the alert as the channel's receiver would get it.",
    say: ({ fault, messages }) =>
      `${fault === null ? "" : `The template failed: ${fault}\n\n`}${messages.join("\n\n")}\n`,
  },
  run: async ({ caller, db, now, service }, { name, alert, template }) => {
    requireEveryZone(caller);
    const channel = service.alerting().channels.find((one) => one.name === name);
    const definition = findChannel(channel?.kind);
    if (channel === undefined || definition === undefined) throw notFound(`channel ${name}`);
    const row = await readAlert(db, alert);
    const stored = row === null ? null : parseDetails(row.details).message;
    if (stored === null) throw notFound(`alert ${alert} with a message`);
    const tried = template ?? templateOf(channel);
    const unknown = tried === undefined ? null : findTemplateFault(tried);
    const { message, fault } = applyTemplate(unknown === null ? tried : undefined, stored);
    const bodies = definition.render(message, now);
    const messages = bodies.map((body) => (typeof body === "string" ? body : JSON.stringify(body, null, 2)));
    return { kind: channel.kind, fault: unknown ?? fault, messages };
  },
});

export const channelOperations = [list, test, preview, channelReplay];

/** Describes the circuit in words. The word "open" alone would suggest a channel that works. */
function toCircuitCell({ circuit, retryAt }: ChannelItem): Cell {
  if (circuit === "closed") return { text: "yes", style: "green" };
  const why: Readonly<Record<string, string>> = {
    open: `next attempt ${retryAt === null ? "" : showTime(retryAt)} UTC`,
    "half-open": "an attempt runs now",
    disabled: "disabled until its configuration changes",
  };
  return { text: `no, ${why[circuit] ?? circuit}`, style: "red" };
}

/** Longer than any channel's own limit. */
const TIMEOUT_MS = 40_000;

interface ChannelTest {
  readonly isDelivered: boolean;
  /** Null if the message was delivered. */
  readonly code: string | null;
  /** One line, free of secrets. */
  readonly text: string;
}

/** Sends the test message once with these links, and resolves it if the receiver keeps incidents open. Never throws. */
export async function testChannel(
  notifier: Notifier,
  nowMs: number,
  links: AlertMessage["links"],
): Promise<ChannelTest> {
  // The receiver keeps an incident open until it is resolved.
  const isKept = notifier.capabilities.laterTransitions === "same-incident";
  const reasons = isKept ? (["first", "resolved"] as const) : (["first"] as const);
  let [providerReference, note]: [string | null, string | null] = [null, null];
  try {
    for (const reason of reasons) {
      const message = { ...buildTestMessage(notifier.name, nowMs, reason), links };
      const deliveryKey = notificationKeyOf(message, notifier.name);
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const sent = await notifier.send(message, { signal, attempt: 1, deliveryKey, providerReference });
      providerReference = sent.providerReference;
      note = sent.note ?? note;
    }
    const text = `the receiver accepted the test message${note === null ? "" : ` (${note})`}`;
    return { isDelivered: true, code: null, text };
  } catch (thrown) {
    const { code, text, disposition } = describeFailure(thrown);
    const next =
      disposition === "give-up"
        ? "a notification would become a dead letter"
        : "a notification would be retried";
    return { isDelivered: false, code, text: `not delivered: ${code}: ${text} (${next})` };
  }
}
