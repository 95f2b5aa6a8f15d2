import { channelFields, type EntryField } from "#config/file/entry-fields.ts";
import { CHANNELS } from "#delivery/receivers/channels/registry.ts";
import { renderTerminal } from "#delivery/receivers/channels/terminal/render-terminal.ts";
import { paintPlain } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { toWebhookBodies } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { ChannelKind } from "#model/kinds.ts";
import { messageOf, verdictMessage } from "./messages.ts";
import { NOW } from "./receiver.ts";

/** Few values, so that a capture is short; the golden files have all of them. */
const { ips, paths } = messageOf().top;
const top = {
  ips: ips.slice(0, 2),
  asns: [],
  countries: [],
  paths: paths.slice(0, 1),
  userAgents: [],
  ja4s: [],
};

/** The alert whose message the page shows. */
const STORY: Readonly<Record<string, AlertMessage>> = {
  first: verdictMessage({ top, advice: { state: "pending", text: null, reason: null } }),
};

const json = (value: unknown) => JSON.stringify(value, null, 2);

function readWebhook(message: AlertMessage): string {
  const { data, ...envelope } = JSON.parse(toWebhookBodies(message, NOW).first);
  const { alertId, dedupeKey, transition, reason, state, severity } = data;
  return json({ ...envelope, data: { alertId, dedupeKey, transition, reason, state, severity, "...": "" } });
}

/** The kinds that the page shows: a text and a signed object. The golden files have the others. */
const READERS: ReadonlyMap<string, (message: AlertMessage) => string> = new Map([
  ["terminal", (message) => renderTerminal(message, { columns: 80, paint: paintPlain }).trimEnd()],
  ["webhook", readWebhook],
]);

/** Returns the readable text of a transition, fenced and without the markup around it. */
function captureOf(kind: string, transition: string): string {
  const [read, message] = [READERS.get(kind), STORY[transition]];
  if (read === undefined || message === undefined) throw new Error(`no capture of ${kind} ${transition}`);
  const text = read(message);
  const fence = "`".repeat(Math.max(3, ...(text.match(/`+/g) ?? []).map((run) => run.length + 1)));
  return `${fence}text\n${text}\n${fence}`;
}

/** The page explains these once for all kinds. */
const COMMON = ["allow_private_networks", "ca_file", "template"];

/** The settings of a kind, from the schema that the file is read with. */
function settingsOf(kind: string): string {
  const all = channelFields.get(kind);
  if (all === undefined) throw new Error(`no kind ${kind}`);
  const fields = all.filter(({ key }) => !COMMON.includes(key));
  if (fields.length === 0) return "No settings besides `kind`.";
  const named = (isRequired: boolean) =>
    fields
      .filter((field) => field.isRequired === isRequired)
      .map(nameField)
      .join(", ");
  const optional = named(false);
  return `Needed: ${named(true)}.${optional === "" ? "" : ` Optional: ${optional}.`}`;
}

function nameField({ key, secret, fields }: EntryField): string {
  if (fields !== null) return `\`${key}\` (${fields.map(nameField).join(", ")})`;
  if (secret === "no") return `\`${key}\``;
  return `${nameSecret(key)}${secret === "many" ? " (lists)" : ""}`;
}

const nameSecret = (key: string) => `\`${key}_file\` or \`${key}_env\``;

/** Every kind there is, in the order of the registry. */
export const KINDS: readonly ChannelKind[] = CHANNELS.map(({ kind }) => kind);

const CAPTURE = /<!-- capture ([a-z-]+) ([a-z]+) -->\n[\s\S]*?<!-- \/capture -->/g;
const SETTINGS = /^(?:Needed|No settings).* <!-- settings ([a-z-]+) -->$/gm;

/** The document with everything between its markers made anew. */
export function fillDocument(text: string): string {
  return text
    .replace(CAPTURE, (_, kind: string, transition: string) => {
      return `<!-- capture ${kind} ${transition} -->\n\n${captureOf(kind, transition)}\n\n<!-- /capture -->`;
    })
    .replace(SETTINGS, (_, kind: string) => `${settingsOf(kind)} <!-- settings ${kind} -->`);
}

/** Returns the shown transitions as `kind transition`. */
export const shownIn = (text: string) =>
  [...text.matchAll(CAPTURE)].map(([, kind, transition]) => `${kind} ${transition}`);
