import { Webhook } from "standardwebhooks";
import { type Arrived, type Receiver, startReceiver } from "./receiver.ts";

/** A receiver of signed lines of JSON. `idOf` finds an event's id in its body; the default is its member `id`. */
export function startWebhookReceiver({
  secret,
  idOf = (body) => String((body as { id?: unknown }).id),
}: {
  readonly secret: string;
  readonly idOf?: (body: unknown) => string;
}): Promise<Receiver> {
  const webhook = new Webhook(secret);
  return startReceiver({
    failure: (status, reason) => ({ status, reason }),
    answer({ text, headers }) {
      try {
        webhook.verify(text, headers as Record<string, string>, { jsonParse: false });
        return null;
      } catch {
        return { status: 401, body: "wrong signature" };
      }
    },
    read: ({ text }) =>
      text
        .slice(0, -1)
        .split("\n")
        .map((line): Arrived => {
          const body: unknown = JSON.parse(line);
          return { id: idOf(body), body };
        }),
    take(events, { refused, postponed, store }) {
      if (events.some(({ id }) => postponed.has(id))) return { status: 503, body: "busy" };
      if (events.some(({ id }) => refused.has(id))) return { status: 400, body: "an event is invalid" };
      for (const event of events) store(event);
      return { status: 204, body: "" };
    },
  });
}
