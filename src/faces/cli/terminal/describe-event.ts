import { shortenText } from "#lib/text.ts";
import type { ArchivedEvent } from "#model/waf-event.ts";
import type { Paint, Style } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { padToWidth } from "#stages/delivery/message/text-width.ts";

const MAX_TEXT_CHARS = 300;
const STYLES: Readonly<Record<string, Style>> = { block: "red", challenge: "yellow", log: "cyan" };

/** Returns an event as one line, without the "https://" of its URL. Its texts are attack payloads: every control character is spelled out. */
export function describeEvent(
  zoneId: number,
  { occurredAt, fields, message }: ArchivedEvent,
  paint: Paint,
): string {
  const { action, ruleId, ip, country, url, ua } = fields;
  const show = (text: string) => shortenText(text, MAX_TEXT_CHARS);
  const pad = (text: string, columns: number) => padToWidth(show(text), columns);
  return [
    paint("dim", new Date(occurredAt).toISOString().slice(11, 23)),
    String(zoneId),
    paint(STYLES[action] ?? "bold", pad(action, 9)),
    pad(ruleId, 8),
    pad(ip, 15),
    pad(country, 2),
    show(url.replace(/^https:\/\//, "")),
    paint(
      "dim",
      [message, ua]
        .filter((text) => text !== "")
        .map(show)
        .join("  "),
    ),
  ]
    .join(" ")
    .trimEnd();
}
