import { type Answer, type Arrived, type Received, type Receiver, startReceiver } from "./receiver.ts";

export interface SplunkOptions {
  readonly token: string;
  /** Whether the token has acknowledgements. */
  readonly acknowledges?: boolean;
  /** How often an id must be asked for before its events count as indexed. */
  readonly asks?: number;
}

/** Texts of the HTTP Event Collector's codes, and the status of each. */
const CODES = {
  0: [200, "Success"],
  2: [401, "Token is required"],
  4: [403, "Invalid token"],
  5: [400, "No data"],
  6: [400, "Invalid data format"],
  9: [503, "Server is busy"],
  10: [400, "Data channel is missing"],
  12: [400, "Event field is required"],
  14: [400, "ACK is disabled"],
} as const;

function answer(code: keyof typeof CODES, more: object = {}): Answer {
  const [status, text] = CODES[code];
  return { status, body: { text, code, ...more } };
}

interface HecEvent {
  readonly event?: unknown;
  readonly fields?: { readonly longwatch_id?: string };
}

/** Reads JSON objects that follow each other without a separator. */
function parseObjects(text: string): HecEvent[] {
  const found: HecEvent[] = [];
  let depth = 0;
  let from = 0;
  let isText = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (isText) {
      if (character === "\\") at += 1;
      else if (character === '"') isText = false;
    } else if (character === '"') isText = true;
    else if (character === "{") depth += 1;
    else if (character === "}") {
      depth -= 1;
      if (depth > 0) continue;
      found.push(JSON.parse(text.slice(from, at + 1)) as HecEvent);
      from = at + 1;
    }
  }
  if (text.slice(from).trim() !== "") throw new Error("the last object has no end");
  return found;
}

/** An HTTP Event Collector. It takes the events before a wrong one, as Splunk does. */
export function startSplunkReceiver({
  token,
  acknowledges = false,
  asks = 1,
}: SplunkOptions): Promise<Receiver> {
  const askedFor = new Map<number, number>();

  function acknowledge({ query, text }: Received): Answer {
    if (!acknowledges) return answer(14);
    if (query.get("channel") === null) return answer(10);
    const { acks } = JSON.parse(text) as { acks: number[] };
    const states = acks.map((id) => {
      const asked = askedFor.get(id);
      if (asked !== undefined) askedFor.set(id, asked + 1);
      return [id, asked !== undefined && asked + 1 >= asks];
    });
    return { status: 200, body: { acks: Object.fromEntries(states) } };
  }

  return startReceiver({
    failure: (status, reason) =>
      (status === 400
        ? answer(6, { "invalid-event-number": 0, reason })
        : status === 503
          ? answer(9)
          : { body: { text: "Failure", code: status === 429 ? 26 : 8 } }
      ).body,
    answer(request) {
      const { authorization } = request.headers;
      if (authorization === undefined) return answer(2);
      if (authorization !== `Splunk ${token}`) return answer(4);
      if (request.path === "/services/collector/ack") return acknowledge(request);
      if (request.path !== "/services/collector/event")
        return { status: 404, body: { text: "The requested URL was not found on this server.", code: 404 } };
      if (acknowledges && request.headers["x-splunk-request-channel"] === undefined) return answer(10);
      return request.text === "" ? answer(5) : null;
    },
    read: ({ text }) =>
      parseObjects(text).map(
        ({ event, fields }): Arrived => ({ id: fields?.longwatch_id ?? "", body: event }),
      ),
    take(events, { refused, postponed, store }) {
      if (events.some(({ id }) => postponed.has(id))) return answer(9);
      for (const [index, event] of events.entries()) {
        if (event.body === undefined) return answer(12, { "invalid-event-number": index });
        if (refused.has(event.id)) return answer(6, { "invalid-event-number": index });
        store(event);
      }
      if (!acknowledges) return answer(0);
      const ackId = askedFor.size;
      askedFor.set(ackId, 0);
      return answer(0, { ackId });
    },
  });
}
